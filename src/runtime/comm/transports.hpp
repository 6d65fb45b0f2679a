#pragma once
// Several ways between the same ranks, for plans that choose among them (partition/execution.hpp).
#include <map>
#include <string>

#include "runtime/comm/decorator.hpp"

namespace stratplan {

/// Exchanges and collectives that name no way are the first one's. Waiting for a stream waits for
/// what is under way on it along all of them.
class TransportsCommunicator final : public CommunicatorDecorator {
 public:
  /// Nothing is known of ways beyond the first yet; it must outlive this.
  explicit TransportsCommunicator(Communicator& first) : CommunicatorDecorator(first) {}
  /// `communicator` must outlive this; it may be the first.
  void add(const std::string& name, Communicator& communicator) {
    transports_[name] = &communicator;
  }

  /// The first one if `name` is empty. Throws EnvironmentError if there is none of that name.
  Communicator& transport(const std::string& name) override;
  void synchronize(Stream stream) override;
  void overlap(bool wanted) override;
  bool poll(Stream stream) override;
  void replayed() override;

 private:
  template <class Call>
  void each(const Call& call);
  std::map<std::string, Communicator*> transports_;
};

}  // namespace stratplan
