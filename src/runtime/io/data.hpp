#pragma once
// Where samples, labels and targets come from. A rank asks for the region that it needs and gets no
// more.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/partition/program/program.hpp"

namespace stratplan {

class DataSource {
 public:
  virtual ~DataSource() = default;
  /// The dense contents of `load.region` for a training step, channels last, in host memory: F32
  /// samples and targets, I32 labels (one per sample and position, without channels). Valid until
  /// the next call.
  virtual std::span<const std::byte> load(const LoadOp& load, std::int64_t step) = 0;
  /// Whether the contents are the same in every step.
  virtual bool fixed() const { return false; }
  /// After how many steps all has been seen.
  virtual std::int64_t steps_per_epoch() const { return 1; }
};

/// One fixed random batch, the same in every step, so that training visibly lowers the loss.
/// Samples are normal, targets uniform in [0, 1), labels uniform; each a function of seed and
/// global element index alone, whatever the decomposition. Generated when first asked for.
class SyntheticData final : public DataSource {
 public:
  explicit SyntheticData(std::uint64_t seed) : seed_(seed) {}
  std::span<const std::byte> load(const LoadOp& load, std::int64_t step) override;
  bool fixed() const override { return true; }

 private:
  struct Part {
    LoadOp load;
    std::vector<std::byte> contents;
  };
  std::uint64_t seed_;
  std::vector<Part> parts_;
};

}  // namespace stratplan
