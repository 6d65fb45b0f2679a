// Kernels of every kind run on a device, by each of their implementations, against the reference: cuDNN's plans and our own.
#include <gtest/gtest.h>

#include "runtime/kernel_cases.hpp"

namespace stratplan::test {
namespace {

using namespace kernel_cases;

/// A buffer of the device; empty ones have an address, too.
class DeviceBuffer {
 public:
  DeviceBuffer(Backend& backend, Values& values, const Operand& operand) : backend_(backend), bytes_(operand.bytes()) {
    memory_ = backend.allocate({std::max<std::int64_t>(bytes_.value, 1)});
    backend.upload(Track::Compute, memory_, data_of(values), bytes_);
  }
  ~DeviceBuffer() { backend_.release(memory_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  void* memory() const { return memory_; }
  void download(Values& values) const { backend_.download(Track::Compute, data_of(values), memory_, bytes_); }

 private:
  Backend& backend_;
  Bytes bytes_;
  void* memory_ = nullptr;
};

std::vector<Values> run_on_device(Backend& backend, const Kernel& kernel, std::vector<Values> reads, std::vector<Values> writes,
                                  const std::string& choice) {
  const Operands all = kernel.operands();
  std::vector<std::unique_ptr<DeviceBuffer>> read_buffers, write_buffers;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (std::size_t i = 0; i < reads.size(); ++i)
    from.push_back(read_buffers.emplace_back(std::make_unique<DeviceBuffer>(backend, reads[i], all.reads[i]))->memory());
  for (std::size_t i = 0; i < writes.size(); ++i)
    to.push_back(write_buffers.emplace_back(std::make_unique<DeviceBuffer>(backend, writes[i], all.writes[i]))->memory());
  const auto prepared = backend.prepare(kernel, choice);
  void* workspace = backend.allocate({std::max<std::int64_t>(prepared->workspace().value, 1)});
  KernelContext context = inner_context(kernel);
  void* now = backend.allocate({sizeof(StepNumbers)});
  backend.upload(Track::Compute, now, context.now, {sizeof(StepNumbers)});
  context.now = static_cast<const StepNumbers*>(now);
  backend.enqueue(Track::Compute, *prepared, from, to, workspace, context);
  for (std::size_t i = 0; i < writes.size(); ++i) write_buffers[i]->download(writes[i]);
  backend.synchronize(Track::Compute);
  backend.release(workspace);
  backend.release(now);
  return writes;
}

class DeviceKernels : public testing::TestWithParam<int> {};

TEST_P(DeviceKernels, EqualTheReferenceAndRepeatBitByBit) {
  if (cuda_devices().empty()) GTEST_SKIP() << "no CUDA device here";
  const std::unique_ptr<Backend> backend = make_cuda_backend(false), reference = make_reference_backend();
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
    for (const Operand& operand : kernel.operands().writes) before.push_back(random_values(operand, random, 1000));
    const std::vector<Values> expected = run(*reference, kernel, reads, inner_context(kernel), before);
    std::vector<std::string> choices = backend->choices(kernel);
    choices.emplace_back();  // by rule
    for (const std::string& choice : choices) {
      SCOPED_TRACE(kernel.key() + (choice.empty() ? "" : " as " + choice));
      const std::vector<Values> actual = run_on_device(*backend, kernel, reads, before, choice);
      expect_equal(kernel, actual, expected);
      EXPECT_EQ(actual, run_on_device(*backend, kernel, reads, before, choice));
    }
    if (HasFatalFailure()) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceKernels, testing::Range(0, kernel_kind_count),
                         [](const auto& instance) { return std::string(name_of(static_cast<KernelKind>(instance.param))); });

}  // namespace
}  // namespace stratplan::test
