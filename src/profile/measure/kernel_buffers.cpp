#include "profile/measure/kernel_buffers.hpp"

#include <algorithm>
#include <cstddef>
#include <random>

#include "model/base/assert.hpp"
#include "runtime/device/float16.hpp"

namespace stratplan {
namespace {

constexpr std::int64_t alignment = 64;
constexpr Bytes aligned(Bytes bytes) {
  return {(bytes.value + alignment - 1) / alignment * alignment};
}

/// The most sets of buffers. With so many sets, no run finds an earlier run's data in a cache. More
/// sets would take long to lay out.
constexpr std::int64_t most_sets = 512;
constexpr Bytes special_arena{64 << 20};

Bytes sum(const std::vector<Operand>& operands) {
  Bytes bytes{};
  for (const Operand& operand : operands) bytes += aligned(operand.bytes());
  return bytes;
}

/// Returns the index in Operands::writes of the operand that shares its buffer with operand `read`
/// of Operands::reads, because the kernel works in place. Returns -1 if there is none. Optimizers
/// read weights, gradient and their state, then perhaps norms and overflows. They write weights,
/// then their state.
int in_place(const Kernel& kernel, std::size_t read) {
  const KernelKind kind = kernel.kind;
  if ((kind == KernelKind::BiasAdd || kind == KernelKind::Unscale) && read == 0) return 0;
  if (kind == KernelKind::RunningAverage) return read == 1 ? 0 : -1;
  if (is_update(kind) && read != 1 && kernel.operands().reads[read].type == DataType::F32)
    return read == 0 ? 0 : static_cast<int>(read) - 1;
  return -1;
}

/// Whether the kernel reads earlier contents of the buffers that it writes.
bool reads_its_writes(const Kernel& kernel) {
  const auto* copy = std::get_if<CopyAttributes>(&kernel.attributes);
  return kernel.kind == KernelKind::BiasAdd || kernel.kind == KernelKind::Unscale ||
         is_update(kernel.kind) || (copy && copy->accumulate);
}

/// Whether the operand needs valid contents instead of random numbers.
bool is_special(const Kernel& kernel, const Operand& operand) {
  return operand.type != DataType::F32 && !is_narrow(operand.type) &&
         kernel.kind != KernelKind::CopyRegion;
}

std::vector<std::byte> labels(std::int64_t count, std::int64_t classes) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<std::int32_t>((i * 2654435761u) % static_cast<std::size_t>(classes));
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(std::int32_t)};
}

/// Returns the sums and sums of squares of samples with mean 0.1 and second moment 1.01.
std::vector<std::byte> sums(const Kernel& kernel) {
  const double terms = static_cast<double>(kernel.sets().set_samples * kernel.sets().positions);
  const auto channels = static_cast<std::size_t>(kernel.x[Axis::C]),
             sets = static_cast<std::size_t>(kernel.sets().sets);
  std::vector<double> values(sets * 2 * channels);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = terms * (i / channels % 2 == 0 ? 0.1 : 1.01);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(double)};
}

/// Returns the sums that DiceLoss reads. Each class is the label of half of the positions. Its x
/// adds up to half of the number of positions, and half of this sum lies at positions with its
/// label.
std::vector<std::byte> class_sums(const Kernel& kernel) {
  const std::int64_t classes = kernel.x[Axis::C],
                     sets = kernel.as<DiceLossAttributes>().per_sample ? kernel.x[Axis::N] : 1;
  const double half = static_cast<double>(kernel.x.elements() / classes / sets) / 2;
  std::vector<double> values(static_cast<std::size_t>(sets * 3 * classes), half);
  for (std::int64_t set = 0; set < sets; ++set)
    std::fill_n(values.begin() + set * 3 * classes, classes, half / 2);
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(double)};
}

/// Returns what the gradients of a LayerNorm read for each row: a mean of 0 and a factor of 1.
std::vector<std::byte> row_statistics(std::int64_t count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (std::size_t i = 1; i < values.size(); i += 2) values[i] = 1;
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  return {bytes, bytes + values.size() * sizeof(double)};
}

std::vector<std::byte> bytes_of(std::initializer_list<double> values) {
  const auto* bytes = reinterpret_cast<const std::byte*>(values.begin());
  return {bytes, bytes + values.size() * sizeof(double)};
}

}  // namespace

DeviceMemory allocate(Backend& backend, Bytes bytes) {
  return {static_cast<std::byte*>(backend.allocate(std::max(bytes, Bytes{alignment}))),
          [&backend](std::byte* memory) { backend.release(memory); }};
}

Noise::Noise(Backend& backend, bool signs) : backend_(backend), numbers_(64 << 10) {
  std::minstd_rand random(1);
  for (float& number : numbers_) {
    number = 0.5F + static_cast<float>(random() % 4096) / 8192.0F;
    if (signs && random() % 2) number = -number;
  }
  for (const DataType type : {DataType::F16, DataType::BF16})
    narrow(type, numbers_.data(), narrow_.try_emplace(type, numbers_.size()).first->second.data(),
           std::ssize(numbers_));
}

void Noise::write(void* device, Bytes bytes, DataType type) const {
  // Pieces come from a source that stays in the second-level cache. A single large copy would
  // bypass the caches.
  const void* numbers =
      is_narrow(type) ? static_cast<const void*>(narrow_.at(type).data()) : numbers_.data();
  const Bytes piece{std::ssize(numbers_) *
                    (is_narrow(type) ? size_of(type) : size_of(DataType::F32))};
  for (Bytes done{}; done < bytes; done += piece)
    backend_.upload(Stream::Compute, static_cast<std::byte*>(device) + done.value, numbers,
                    std::min(piece, bytes - done));
  backend_.synchronize(Stream::Compute);
}

void Noise::read(const void* device, Bytes bytes) const {
  std::vector<float> scratch(numbers_.size());
  const Bytes piece{static_cast<std::int64_t>(scratch.size() * sizeof(float))};
  for (Bytes done{}; done < bytes; done += piece)
    backend_.download(Stream::Compute, scratch.data(),
                      static_cast<const std::byte*>(device) + done.value,
                      std::min(piece, bytes - done));
  backend_.synchronize(Stream::Compute);
}

std::vector<RecentUse> recent_uses(const Kernel& kernel) {
  using enum KernelKind;
  switch (kernel.kind) {
    case ConvolutionBackwardFilter:
      return {{1, false}};  // x was saved, and dy has just been read for the other gradient
    case BatchNormForward: return {{0, false}};  // x, read for the statistics
    case BatchNormBackward:                      // x, dy and the activation, read for the sums
      if (kernel.epilogue().activation) return {{0, false}, {1, false}, {5, false}};
      return {{0, false}, {1, false}};
    case PointwiseBackward:
    case PreluBackward:
    case SoftmaxBackward:
    case LocalResponseBackward:
    case LayerNormBackward:
    case BatchNormBackwardSums: return {{1, true}};  // dy
    case ReduceBackward:
    case BinaryBackward: return {{kernel.operands().reads.size() - 1, true}};  // dy
    case LayerNormGradient:
    case PreluGradient: return {{0, false}, {1, false}};  // both, read for the other gradient
    case DiceLoss: return {{0, false}};                   // labels, for the sums
    case SgdMomentum:
    case Sgd:
    case SgdNesterov:
    case Adam:
    case AdamW:
    case SquaredNorms:
    case Lars:
    case Fill: return {};
    case ConvolutionForward:
    case ConvolutionBackwardData:
    case BiasAdd:
    case BiasGradient:
    case MaxPoolForward:
    case MaxPoolBackward:
    case AveragePoolForward:
    case AveragePoolBackward:
    case SpatialMeanForward:
    case SpatialMeanBackward:
    case BatchNormStatistics:
    case BatchNormMoments:
    case BatchNormRunningSums:
    case BatchNormInference:
    case RunningAverage:
    case PointwiseForward:
    case BinaryForward:
    case PreluForward:
    case SoftmaxForward:
    case LocalResponseForward:
    case LayerNormForward:
    case UpsampleForward:
    case UpsampleBackward:
    case ReduceForward:
    case RearrangeForward:
    case RearrangeBackward:
    case Add:
    case Dropout:
    case SoftmaxCrossEntropy:
    case ElementwiseLoss:
    case LabelWeights:
    case WeightedCrossEntropy:
    case DiceSums:
    case CopyRegion:
    case Convert:
    case Widen:
    case Unscale:
    case AdjustLossScale: return {{0, true}};
  }
  SP_ASSERT(false, "kind={}", static_cast<int>(kernel.kind));
  return {};
}

KernelBuffers::KernelBuffers(Backend& backend, Bytes largest, Bytes arena)
    : backend_(backend),
      noise_(backend, true),
      arena_(std::max(aligned(largest), arena)),
      reads_(allocate(backend, arena_)),
      writes_(allocate(backend, arena_)),
      step_(allocate(backend, {sizeof(StepNumbers)})) {
  noise_.write(reads_.get(), arena_);
  noise_.write(writes_.get(), arena_);
  const StepNumbers numbers{.learning_rate = 1e-3, .mean_bias = 0.1, .square_bias = 1e-3};
  backend.upload(Stream::Compute, step_.get(), &numbers, {sizeof numbers});
  backend.synchronize(Stream::Compute);
}

void KernelBuffers::arrange(const Kernel& kernel) {
  const Operands operands = kernel.operands();
  const Bytes set_bytes = std::max({sum(operands.reads), sum(operands.writes), Bytes{alignment}});
  SP_ASSERT(set_bytes <= arena_, "the kernel {} needs {} bytes, but the arena has {}", kernel.key(),
            set_bytes.value, arena_.value);
  const std::int64_t sets = std::clamp<std::int64_t>(arena_.value / set_bytes.value, 1,
                                                     reads_its_writes(kernel) ? 16 : most_sets);
  if (const DataType type = is_narrow(kernel.type) ? kernel.type : DataType::F32;
      type != read_as_) {
    noise_.write(reads_.get(), arena_, type);
    read_as_ = type;
  }
  special_.clear();
  sets_.clear();
  for (std::int64_t i = 0; i < sets; ++i) {
    Set& set = sets_.emplace_back();
    Bytes place = set_bytes * i;
    for (const Operand& operand : operands.writes) {
      set.writes.push_back(writes_.get() + place.value);
      if (reads_its_writes(kernel)) noise_.write(set.writes.back(), operand.bytes(), operand.type);
      place += aligned(operand.bytes());
    }
    place = set_bytes * i;
    for (std::size_t read = 0; read < operands.reads.size(); ++read) {
      const int written = in_place(kernel, read);
      set.reads.push_back(
          written < 0 ? reads_.get() + place.value
                      : static_cast<std::byte*>(set.writes[static_cast<std::size_t>(written)]));
      place += aligned(operands.reads[read].bytes());
    }
  }
  for (std::size_t read = 0; read < operands.reads.size(); ++read)
    if (is_special(kernel, operands.reads[read])) place_special(kernel, read, operands.reads[read]);
}

/// Replaces the noise of one operand by valid contents in all sets. Several copies are made,
/// because a single one would stay in the caches.
void KernelBuffers::place_special(const Kernel& kernel, std::size_t read, const Operand& operand) {
  const auto copies = static_cast<std::size_t>(std::clamp<std::int64_t>(
      special_arena.value / std::max<std::int64_t>(operand.bytes().value, 1), 1,
      std::ssize(sets_)));
  const std::size_t first = special_.size();
  std::vector<std::byte> contents;
  const bool is_last = read + 1 == kernel.operands().reads.size();
  if (kernel.kind == KernelKind::MaxPoolBackward)
    contents = pool_indices(kernel);
  else if (is_last &&
           ((kernel.scaled() && is_update(kernel.kind)) || kernel.kind == KernelKind::Unscale ||
            kernel.kind == KernelKind::AdjustLossScale))
    contents = bytes_of({0});  // the number of overflows
  else if ((is_last && kernel.scaled()) || kernel.kind == KernelKind::Unscale ||
           kernel.kind == KernelKind::AdjustLossScale)
    contents = bytes_of({1, 0});  // the loss scale
  else if (kernel.kind == KernelKind::WeightedCrossEntropy && operand.type == DataType::F64)
    contents = bytes_of({static_cast<double>(kernel.x.elements() / kernel.x[Axis::C])});
  else if (kernel.kind == KernelKind::DiceLoss && operand.type == DataType::F64)
    contents = class_sums(kernel);
  else if (kernel.has<LayerNormAttributes>())
    contents = row_statistics(operand.elements);
  else if (kernel.kind == KernelKind::Lars)
    contents = bytes_of({4, 9});  // arbitrary squared norms of weights and of a gradient
  else if (kernel.kind == KernelKind::RunningAverage)
    contents = std::vector<std::byte>(static_cast<std::size_t>(operand.bytes().value));
  else
    contents =
        operand.type == DataType::I32 ? labels(operand.elements, kernel.x[Axis::C]) : sums(kernel);
  SP_ASSERT(std::ssize(contents) == operand.bytes().value,
            "{}: expected {} bytes of contents for input operand {}, found {}", kernel.key(),
            operand.bytes().value, read, contents.size());
  for (std::size_t i = 0; i < copies; ++i) {
    special_.push_back(allocate(backend_, operand.bytes()));
    backend_.upload(Stream::Compute, special_.back().get(), contents.data(), operand.bytes());
  }
  for (std::size_t i = 0; i < sets_.size(); ++i)
    sets_[i].reads[read] = special_[first + i % copies].get();
  backend_.synchronize(Stream::Compute);
}

/// Returns the indices of the maxima that the forward kernel finds in noise.
std::vector<std::byte> KernelBuffers::pool_indices(const Kernel& kernel) {
  Kernel forward = kernel;
  forward.kind = KernelKind::MaxPoolForward;
  const Operands operands = forward.operands();
  const DeviceMemory x = allocate(backend_, operands.reads[0].bytes()),
                     y = allocate(backend_, operands.writes[0].bytes()),
                     index = allocate(backend_, operands.writes[1].bytes());
  noise_.write(x.get(), operands.reads[0].bytes());
  const auto prepared = backend_.prepare(forward);
  const std::array<const void*, 1> reads{x.get()};
  const std::array<void*, 2> writes{y.get(), index.get()};
  backend_.enqueue(Stream::Compute, *prepared, reads, writes, workspace(prepared->workspace()), {});
  std::vector<std::byte> contents(static_cast<std::size_t>(operands.writes[1].bytes().value));
  backend_.download(Stream::Compute, contents.data(), index.get(), operands.writes[1].bytes());
  backend_.synchronize(Stream::Compute);
  return contents;
}

void KernelBuffers::refresh(const Kernel& kernel, int run) {
  const Operands operands = kernel.operands();
  for (const RecentUse& use : recent_uses(kernel)) {
    const Operand& operand = operands.reads[use.read];
    if (is_special(kernel, operand)) continue;
    const void* buffer = set(run).reads[use.read];
    if (use.written)
      noise_.write(const_cast<void*>(buffer), operand.bytes(), operand.type);
    else
      noise_.read(buffer, operand.bytes());
  }
}

void* KernelBuffers::workspace(Bytes bytes) {
  if (bytes > workspace_bytes_ || !workspace_) {
    workspace_.reset();
    workspace_ = allocate(backend_, bytes);
    workspace_bytes_ = bytes;
  }
  return workspace_.get();
}

}  // namespace stratplan
