#pragma once
// Text of HTML and SVG documents.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "report/table.hpp"

namespace stratplan {

/// Returns the text with the characters that XML reads as syntax replaced.
std::string escaped(std::string_view text);

/// Returns the table as HTML, in a box of its own that can be scrolled sideways.
std::string to_html(const Table& table);

/// Colours that colour-blind readers can tell apart: M. Okabe, K. Ito, Color universal design,
/// 2008, without their yellow, which is hard to see on white, and with further dark ones.
inline constexpr std::array<const char*, 10> distinct_colours{
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00",
    "#56b4e9", "#808080", "#7a4b00", "#5b2a86", "#8fa31e"};
/// The text colour, black or white, with the greater contrast on a colour "#rrggbb".
const char* text_on(std::string_view colour);

/// The style of all pictures: light or dark by the reader's preference.
inline constexpr std::string_view svg_style =
    "<style>svg{background:#fff;color:#222}text{fill:currentColor}@media(prefers-color-"
    "scheme:dark){svg{background:#1b1b1b;color:#ddd}}</style>\n";

/// A picture that is built from elements. Coordinates are in units of the picture, of which a
/// letter of its text is 11 high. The picture holds no script and no font. Its background and lines
/// are light or dark by the reader's preference.
class Picture {
 public:
  Picture(double width, double height) : width_(width), height_(height) {}

  struct Look {
    std::string fill = "none";
    std::string line{};  ///< colour of the outline; empty: none
    double opacity = 1;  ///< of the fill
    std::string hint{};  ///< shown when the pointer rests on the element
    bool dashed = false;
  };
  void rectangle(double x, double y, double width, double height, const Look& look);
  /// `points`: pairs of x and y.
  void polygon(const std::vector<std::pair<double, double>>& points, const Look& look);
  /// A line of the text's colour.
  void line(double x, double y, double to_x, double to_y, double opacity = 1);
  /// Any path of the text's colour, in SVG's notation.
  void path(const std::string& path, double opacity = 1);
  enum class Anchor { Start, Middle, End };
  /// `colour`: empty for the text's own.
  void text(double x, double y, std::string_view text, Anchor anchor = Anchor::Start,
            const std::string& colour = {}, double size = 11);
  /// Text that ends before `width` with an ellipsis if it is longer. The whole text is its hint.
  void text_within(double x, double y, double width, const std::string& text,
                   const std::string& colour = {});

  /// Returns the SVG document. `title`: read aloud in place of the picture.
  std::string svg(const std::string& title) const;

 private:
  void add(const std::string& element, const std::string& hint);
  double width_, height_;
  std::string elements_;
};

}  // namespace stratplan
