import Foundation

/// Text and boxes of a picture, without a background, in colors for light and for dark pages.
struct SVGCanvas {
  /// A color or a font of the style sheet.
  enum Style: String {
    case title
    case head
    case text
    case dim
    /// The bar of Tidemark, and that of another engine.
    case own
    case peer
    /// The field of a figure that is better or worse than Tidemark's, and by a factor of two.
    case better
    case farBetter = "far-better"
    case worse
    case farWorse = "far-worse"
  }

  enum Anchor: String {
    case start
    case end
  }

  private static let style = """
    <style>
    text { font: 13px -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif; }
    .title { font-size: 15px; font-weight: 600; }
    .head { font-weight: 600; }
    .title, .head, .text { fill: #1f2328; }
    .dim { fill: #59636e; }
    .own { fill: #1f8a5f; }
    .peer { fill: #9aa4ae; }
    .worse { fill: #dff3e6; }
    .far-worse { fill: #b4e4c5; }
    .better { fill: #fdead7; }
    .far-better { fill: #fbcfa4; }
    @media (prefers-color-scheme: dark) {
      .title, .head, .text { fill: #e6edf3; }
      .dim { fill: #9aa4ae; }
      .own { fill: #3fb57f; }
      .peer { fill: #6e7781; }
      .worse { fill: #173d2a; }
      .far-worse { fill: #1f6141; }
      .better { fill: #4a3120; }
      .far-better { fill: #7a4a1f; }
    }
    </style>
    """

  private let width: Double
  private var lines: [String] = []

  init(width: Double) { self.width = width }

  mutating func write(
    _ text: String, _ x: Double, _ y: Double, _ style: Style = .text, _ anchor: Anchor = .start
  ) {
    let safe = text.replacingOccurrences(of: "&", with: "&amp;")
      .replacingOccurrences(of: "<", with: "&lt;")
    lines.append(
      """
      <text x="\(Self.number(x))" y="\(Self.number(y))" class="\(style.rawValue)" \
      text-anchor="\(anchor.rawValue)">\(safe)</text>
      """)
  }

  mutating func fill(_ x: Double, _ y: Double, width: Double, height: Double, _ style: Style) {
    lines.append(
      """
      <rect x="\(Self.number(x))" y="\(Self.number(y))" width="\(Self.number(width))" \
      height="\(Self.number(height))" rx="2" class="\(style.rawValue)"/>
      """)
  }

  /// - Parameter title: the picture in words, for readers who do not see it.
  func finished(height: Double, title: String) -> String {
    let size = "\(Self.number(width)) \(Self.number(height))"
    let start = """
      <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 \(size)" \
      width="\(Self.number(width))" height="\(Self.number(height))" role="img">
      <title>\(title)</title>
      """
    return ([start, Self.style] + lines + ["</svg>"]).joined(separator: "\n") + "\n"
  }

  private static func number(_ value: Double) -> String { Figures.fixed(value, 1) }
}
