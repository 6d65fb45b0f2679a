// Compares AxisDigits' answers about two splits with the splits' blocks, rank by rank.
#include "model/partition/axis_digits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "model/partition/grid_space.hpp"

namespace stratplan {
namespace {

/// Where digits divide each other, either some rank has nothing in common, or each rank has a whole
/// block in common. The same holds among the ranks of the innermost group.
TEST(AxisDigits, MeetAsTheirBlocksDo) {
  for (const Topology& topology : std::vector<Topology>{{4, 4}, {8, 2}, {16}}) {
    const GridSpace space(topology, {Dim::N, Dim::F, Dim::C, Dim::R});
    const int innermost = topology.back(), ranks = space.ranks();
    const std::vector<DimList> homes{{Dim::N}, {Dim::F, Dim::C}}, readers{{Dim::N}, {Dim::C}};
    for (std::size_t i = 0; i < homes.size(); ++i) {
      for (std::size_t a = 0; a < space.size(); a += 3) {
        for (std::size_t b = 0; b < space.size(); b += 5) {
          const AxisDigits home = digits_along(space.digits(a), homes[i], innermost),
                           wanted = digits_along(space.digits(b), readers[i], innermost);
          const Meeting meeting = meet(home, wanted, innermost, ranks);
          const int finest = 16, of_home = finest / home.parts(),
                    of_wanted = finest / wanted.parts();
          const auto common = [&](int holder, int reader) {
            const int first =
                std::max(home.index_of(holder) * of_home, wanted.index_of(reader) * of_wanted);
            const int end = std::min((home.index_of(holder) + 1) * of_home,
                                     (wanted.index_of(reader) + 1) * of_wanted);
            return std::max(0, end - first);
          };
          int least = finest, near = finest;
          for (int rank = 0; rank < ranks; ++rank) {
            least = std::min(least, common(rank, rank));
            std::array<bool, finest> held{};
            for (int mate = rank / innermost * innermost; mate < (rank / innermost + 1) * innermost;
                 ++mate)
              for (int part = 0; part < of_home; ++part)
                held[static_cast<std::size_t>(home.index_of(mate) * of_home + part)] = true;
            const auto begin = held.begin() + wanted.index_of(rank) * of_wanted;
            near = std::min(near, static_cast<int>(std::count(begin, begin + of_wanted, true)));
          }
          const auto text = [&] { return space.grid(a).text() + " to " + space.grid(b).text(); };
          EXPECT_EQ(meeting.common > 0, least > 0) << text();
          EXPECT_TRUE(least == 0 || least == std::min(of_home, of_wanted))
              << text() << ": " << least;
          EXPECT_NEAR(meeting.near_home, static_cast<double>(near) / of_wanted, 1e-6) << text();
        }
      }
    }
  }
}

/// Where digits cannot be matched, the overlap is at least the least one, and what counts as apart
/// is apart on some rank.
TEST(AxisDigits, MeetBetweenFactorsThatDoNotDivide) {
  int apart = 0;
  for (const Topology& topology : std::vector<Topology>{{6, 4}, {3, 2}, {12}, {15, 2}}) {
    const GridSpace space(topology, {Dim::N, Dim::H, Dim::R});
    const int innermost = topology.back(), ranks = space.ranks();
    for (std::size_t a = 0; a < space.size(); a += 2) {
      for (std::size_t b = 0; b < space.size(); b += 3) {
        const DimList by{Dim::H};
        const AxisDigits home = digits_along(space.digits(a), by, innermost),
                         wanted = digits_along(space.digits(b), by, innermost);
        const Meeting meeting = meet(home, wanted, innermost, ranks);
        const auto overlap = [&](int holder, int reader) {
          const int of_home = wanted.parts(), of_wanted = home.parts();
          return std::max(home.index_of(holder) * of_home, wanted.index_of(reader) * of_wanted) <
                 std::min((home.index_of(holder) + 1) * of_home,
                          (wanted.index_of(reader) + 1) * of_wanted);
        };
        bool own = true, near_home = true, near_reader = true;
        for (int rank = 0; rank < ranks; ++rank) {
          bool held = false, read = false;
          for (int mate = rank / innermost * innermost; mate < (rank / innermost + 1) * innermost;
               ++mate) {
            held = held || overlap(mate, rank);
            read = read || overlap(rank, mate);
          }
          own = own && overlap(rank, rank);
          near_home = near_home && held;
          near_reader = near_reader && read;
        }
        const auto text = [&] { return space.grid(a).text() + " to " + space.grid(b).text(); };
        EXPECT_FALSE(meeting.common == 0 && own) << text();
        EXPECT_FALSE(meeting.near_home == 0 && near_home) << text();
        EXPECT_FALSE(meeting.near_wanted == 0 && near_reader) << text();
        apart += meeting.matched ? 0 : 1;
      }
    }
  }
  EXPECT_GT(apart, 100);
}

}  // namespace
}  // namespace stratplan
