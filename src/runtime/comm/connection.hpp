#pragma once
// Sends and receives frames over one socket between two ranks. A frame is a header that describes
// the data, followed by the data's bytes. No function blocks.
#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

namespace stratplan {

class Connection {
 public:
  struct Header {
    /// the tag of an exchange, or the hash of a group. Frames of one channel arrive in order
    std::uint32_t channel = 0;
    std::uint32_t call = 0;  ///< hash of a collective's arguments, equal on both sides
    std::int64_t bytes = 0;
  };

  /// Takes ownership of the socket. `rank` and `peer` are the ranks at its ends, for error
  /// messages.
  Connection(int socket, int rank, int peer);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  int socket() const { return socket_; }
  /// Queues a frame for sending, and sends what the socket takes now. `data` must stay valid until
  /// idle().
  void send(const Header& header, const void* data);
  /// Expects a frame: the next frame of the header's channel is stored at `data`, which must stay
  /// valid until idle(). Throws CommunicationError if the peer has ended, or if size or call of the
  /// frame differ from `header`.
  void receive(const Header& header, void* data);
  bool wants_to_write() const { return !outgoing_.empty(); }
  /// Whether the peer may still send.
  bool open() const { return !closed_; }
  /// Whether all queued frames were sent, and all expected frames were received.
  bool idle() const { return outgoing_.empty() && expected_.empty(); }

  /// write_some() is called when the socket can be written, read_some() when it can be read. Both
  /// throw CommunicationError.
  void write_some();
  void read_some();

 private:
  struct Outgoing {
    Header header;
    const std::byte* data;
    std::int64_t done;  ///< bytes sent, including the header
  };
  struct Expected {
    Header header;
    std::byte* data;
  };
  struct Early {
    Header header;
    std::vector<std::byte> contents;
    bool complete = false;
  };
  [[noreturn]] void gone(const std::string& why) const;
  void check(const Header& found, const Header& wanted) const;
  void deliver(std::list<Early>::iterator early, std::vector<Expected>::iterator wanted);
  std::vector<Expected>::iterator waiting_for(std::uint32_t channel);
  Early& new_early();
  void begin_frame();
  void end_frame();
  /// Reads bytes that have arrived, until `done` is `bytes`. Returns false if some bytes are still
  /// missing.
  bool fill(std::byte* data, std::int64_t bytes, std::int64_t& done);

  int socket_, rank_, peer_;
  bool closed_ = false;  ///< whether the peer has closed its end
  // The lists of frames are short. Their memory is kept, so that repeated iterations allocate
  // nothing.
  std::vector<Outgoing> outgoing_;
  std::vector<Expected> expected_;
  std::list<Early> early_;  ///< frames that arrived before receive() expected them
  std::list<Early> spare_;  ///< early frames that were delivered, kept for their memory
  // The frame that is arriving.
  std::array<std::byte, sizeof(Header)> header_bytes_{};
  std::int64_t header_done_ = 0, done_ = 0;
  Header header_;
  std::byte* into_ = nullptr;
  /// the arriving frame's index in expected_ if the frame was expected. The index stays valid,
  /// because only later entries are erased while the frame arrives
  std::ptrdiff_t taken_ = 0;
  bool was_expected_ = false;
};

}  // namespace stratplan
