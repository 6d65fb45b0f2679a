// Kernels of every kind on a device, by each of their implementations (cuDNN's plans and own
// kernels), compared with the reference.
#include <gtest/gtest.h>

#include <array>

#include "runtime/cuda/needs_device.hpp"
#include "runtime/kernel_cases.hpp"

namespace stratplan::test {
namespace {

using namespace kernel_cases;

/// A buffer on the device. Empty buffers have an address, too.
class DeviceBuffer {
 public:
  DeviceBuffer(Backend& backend, Values& values, const Operand& operand)
      : backend_(backend), bytes_(operand.bytes()) {
    memory_ = backend.allocate({std::max<std::int64_t>(bytes_.value, 1)});
    upload(values);
  }
  ~DeviceBuffer() { backend_.release(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* memory() const { return memory_; }
  void upload(Values& values) const {
    backend_.upload(Stream::Compute, memory_, data_of(values), bytes_);
  }
  void download(Values& values) const {
    backend_.download(Stream::Compute, data_of(values), memory_, bytes_);
  }

 private:
  Backend& backend_;
  Bytes bytes_;
  void* memory_ = nullptr;
};

/// Runs the kernel twice and returns both outputs.
std::array<std::vector<Values>, 2> run_on_device(Backend& backend, const Kernel& kernel,
                                                 std::vector<Values> reads,
                                                 const std::vector<Values>& before,
                                                 const std::string& choice) {
  const Operands all = kernel.operands();
  std::vector<std::unique_ptr<DeviceBuffer>> read_buffers, write_buffers;
  std::vector<const void*> from;
  std::vector<void*> to;
  std::array<std::vector<Values>, 2> written{before, before};
  for (std::size_t i = 0; i < reads.size(); ++i)
    from.push_back(
        read_buffers.emplace_back(std::make_unique<DeviceBuffer>(backend, reads[i], all.reads[i]))
            ->memory());
  for (std::size_t i = 0; i < before.size(); ++i)
    to.push_back(
        write_buffers
            .emplace_back(std::make_unique<DeviceBuffer>(backend, written[0][i], all.writes[i]))
            ->memory());
  const auto prepared = backend.prepare(kernel, choice);
  void* workspace = backend.allocate({std::max<std::int64_t>(prepared->workspace().value, 1)});
  KernelContext context = inner_context(kernel);
  void* now = backend.allocate({sizeof(StepNumbers)});
  backend.upload(Stream::Compute, now, context.now, {sizeof(StepNumbers)});
  context.now = static_cast<const StepNumbers*>(now);
  for (std::vector<Values>& values : written) {
    for (std::size_t i = 0; i < values.size(); ++i) write_buffers[i]->upload(values[i]);
    backend.enqueue(Stream::Compute, *prepared, from, to, workspace, context);
    for (std::size_t i = 0; i < values.size(); ++i) write_buffers[i]->download(values[i]);
  }
  backend.synchronize(Stream::Compute);
  backend.release(workspace);
  backend.release(now);
  return written;
}

class DeviceKernels : public NeedsDevice<testing::TestWithParam<int>> {};

TEST_P(DeviceKernels, EqualTheReferenceAndRepeatBitByBit) {
  const std::unique_ptr<Backend> backend = make_cuda_backend(false),
                                 reference = make_reference_backend();
  Random random(static_cast<unsigned>(GetParam()));
  std::vector<Kernel> kernels = cases_of(static_cast<KernelKind>(GetParam()));
  const std::size_t wide = works_on_activations(kernels.front().kind) ? kernels.size() : 0;
  for (std::size_t i = 0; i < wide; ++i) {
    kernels.push_back(kernels[i]);
    kernels.back().type = i % 2 ? DataType::F16 : DataType::BF16;
  }
  for (const Kernel& kernel : kernels) {
    const std::vector<Values> reads = operands(kernel, random);
    std::vector<Values> before;
    for (const Operand& operand : kernel.operands().writes)
      before.push_back(random_values(operand, random, 1000));
    const std::vector<Values> expected =
        run(*reference, kernel, reads, inner_context(kernel), before);
    // Narrow convolutions have dozens of choices. Two in eight cases run all choices; more would
    // take minutes.
    const std::size_t index = static_cast<std::size_t>(&kernel - kernels.data());
    std::vector<std::string> choices = is_narrow(kernel.type) && index % 8 > 1
                                           ? std::vector<std::string>()
                                           : backend->choices(kernel);
    choices.emplace_back();  // the default rule
    for (const std::string& choice : choices) {
      SCOPED_TRACE(kernel.key() + (choice.empty() ? "" : " as " + choice));
      const auto [actual, again] = run_on_device(*backend, kernel, reads, before, choice);
      expect_equal(kernel, actual, expected);
      EXPECT_EQ(actual, again);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceKernels, testing::Range(0, kernel_kind_count),
                         [](const auto& instance) {
                           return std::string(name_of(static_cast<KernelKind>(instance.param)));
                         });

}  // namespace
}  // namespace stratplan::test
