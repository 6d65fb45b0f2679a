#pragma once
// A log that keeps its messages.
#include <string>
#include <vector>

#include "model/base/log.hpp"

namespace stratplan::test {

class KeptLog final : public Log {
 public:
  void note(const std::string& message) override { notes.push_back(message); }
  void phase(const std::string& text) override { phases.push_back(text); }
  void update(const std::string&) override {}
  /// Returns the notes, one per line.
  std::string text() const {
    std::string all;
    for (const std::string& message : notes) all += message + "\n";
    return all;
  }

  std::vector<std::string> notes, phases;
};

}  // namespace stratplan::test
