#pragma once
// Line charts as SVG. The same numbers give the same bytes; the SVG holds no script and no font.
#include <string>
#include <utility>
#include <vector>

#include "model/base/certainty.hpp"

namespace stratplan {

struct ChartAxis {
  std::string title;  ///< with its unit
  bool logarithmic = false;
  double least = 0;             ///< a linear axis begins here, or lower if the lines need it
  double most = 0;              ///< a linear axis ends here, or higher if the lines need it
  std::vector<double> marks{};  ///< used instead of tick_marks(), unless empty
};

struct ChartLine {
  std::string name;
  /// x ascending; on a logarithmic axis positive
  std::vector<std::pair<double, double>> points{};
  /// The line is an ideal, not a result. It is drawn grey, without markers or legend entry.
  bool dashed = false;
  /// by point, the range that is shaded around the line; empty: nothing is shaded
  std::vector<Range> band{};
};

struct Chart {
  std::string title;
  ChartAxis x, y;
  std::vector<ChartLine> lines;
};

/// Returns the marks on an axis from `low` to `high`. On a logarithmic axis they are powers of ten,
/// and also 2 and 5 times powers of ten if the axis covers at most 3.5 powers of ten. On a linear
/// axis they are about six multiples of 1, 2 or 5 times a power of ten.
std::vector<double> tick_marks(double low, double high, bool logarithmic);

/// Draws the charts beside each other, with one legend for all. Lines of one name have one colour
/// and one marker. The first six colours are from Okabe and Ito, whose colours colour-blind readers
/// can tell apart. The background is light or dark by the reader's preference.
std::string to_svg(const std::vector<Chart>& charts);

}  // namespace stratplan
