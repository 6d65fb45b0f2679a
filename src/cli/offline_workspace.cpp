#include "cli/offline_workspace.hpp"

#include <fmt/format.h>

#include <fstream>
#include <map>
#include <memory>
#include <mutex>

#include "cli/console.hpp"
#include "model/base/error.hpp"
#include "model/base/json/json.hpp"
#include "model/partition/program/contraction.hpp"

namespace stratplan {
namespace {

/// If more answers than this are known, only the current run's new answers are written, to keep the
/// file quick to read.
constexpr std::size_t most_kept = 50000;

/// The device's answers: the bytes of scratch memory of each kernel, by Kernel::key(). The first
/// line of the file names the library that gave the answers. Each further line is "BYTES KEY".
class Answers {
 public:
  Answers(OfflineDevice device, std::filesystem::path file)
      : device_(std::move(device)), file_(std::move(file)) {
    read();
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;
  ~Answers() {
    if (fresh_.empty()) return;
    try {
      write();
    } catch (const EnvironmentError&) {  // the next run asks the device again
    }
  }

  Bytes of(const Kernel& kernel) {
    if (!is_contraction(kernel.kind)) return device_.workspace(kernel);
    const std::string key = kernel.key();
    const std::lock_guard lock(guard_);
    const auto known = known_.find(key);
    return known != known_.end() ? known->second : known_[key] = ask(kernel, key);
  }

 private:
  Bytes ask(const Kernel& kernel, const std::string& key) {
    try {
      return fresh_[key] = device_.workspace(kernel);
    } catch (const EnvironmentError& error) {
      if (!std::exchange(said_, true))
        note(fmt::format("predicted memory leaves out the scratch memory of some kernels: {}",
                         error.what()));
      return {0};
    }
  }

  void read() {
    std::ifstream stream(file_);
    std::string library, key;
    if (!std::getline(stream, library) || library != device_.library) return;
    Bytes bytes;
    while (stream >> bytes.value && stream.get() == ' ' && std::getline(stream, key))
      known_[key] = bytes;
  }

  void write() const {
    std::string text = device_.library + "\n";
    for (const auto& [key, bytes] : known_.size() > most_kept ? fresh_ : known_)
      text += fmt::format("{} {}\n", bytes.value, key);
    make_folders(file_.parent_path());
    write_file_atomically(file_, text);
  }

  OfflineDevice device_;
  std::filesystem::path file_;
  std::mutex guard_;
  std::map<std::string, Bytes> known_, fresh_;
  bool said_ = false;
};

/// Returns the kernel to ask cuDNN about. If `math` is fp16 or bf16, a contraction of floats gets
/// that type.
Kernel computed_in(Kernel kernel, Math math) {
  if (!is_contraction(kernel.kind) || kernel.type != DataType::F32) return kernel;
  if (math == Math::Fp16) kernel.type = DataType::F16;
  if (math == Math::Bf16) kernel.type = DataType::BF16;
  return kernel;
}

}  // namespace

std::function<Bytes(const Kernel&)> remembering(OfflineDevice device,
                                                const std::filesystem::path& file) {
  const auto answers = std::make_shared<Answers>(std::move(device), file);
  return [answers](const Kernel& kernel) { return answers->of(kernel); };
}

std::function<Bytes(const Kernel&)> workspace_there(const DeviceRates& device) {
  const bool tf32 = device.math == Math::Tf32;
  const std::optional<OfflineDevice> described = offline_device(device.name, tf32);
  if (!described) return {};
  return
      [workspace = remembering(
           *described,
           cache_folder() / fmt::format("workspaces-{}{}.txt", device.name, tf32 ? "-tf32" : "")),
       math = device.math](const Kernel& kernel) { return workspace(computed_in(kernel, math)); };
}

}  // namespace stratplan
