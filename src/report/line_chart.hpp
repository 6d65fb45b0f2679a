#pragma once
// Line charts as SVG, written here: the same bytes for the same numbers, no script, no font of its
// own.
#include <string>
#include <utility>
#include <vector>

namespace stratplan {

struct ChartAxis {
  std::string title;  ///< with its unit
  bool logarithmic = false;
  double least = 0;             ///< of a linear axis, where it begins at the latest
  double most = 0;              ///< likewise, where it ends at the earliest
  std::vector<double> marks{};  ///< instead of tick_marks
};

struct ChartLine {
  std::string name;
  std::vector<std::pair<double, double>> points;  ///< x ascending; on a logarithmic axis positive
  bool dashed = false;  ///< an ideal rather than a result: grey, without markers, not in the legend
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartLine> lines;
};

/// Marks on an axis from `low` to `high`. Logarithmic: powers of ten, with their doubles and fives
/// where those are few; linear: multiples of 1, 2 or 5 times a power of ten, about six.
std::vector<double> tick_marks(double low, double high, bool logarithmic);

/// Charts beside each other, with one legend for all: lines of one name have one colour (Okabe and
/// Ito's, told apart by all eyes) and one marker. Light and dark by the reader's preference.
std::string to_svg(const std::vector<Chart>& charts);

}  // namespace stratplan
