/// The argument parser's words, made fit for a terminal.
enum HelpText {
  /// Below this the parser has no room for the column of descriptions.
  static let leastColumns = 40

  /// Breaks the line of usage, which the parser leaves as long as it is, between arguments.
  static func wrappingUsage(_ help: String, columns: Int) -> String {
    help.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      line.hasPrefix("USAGE: ") && line.count > columns
        ? wrapped(words(line), columns: columns, indent: 7) : String(line)
    }.joined(separator: "\n")
  }

  /// The words of a line; what stands in brackets is one.
  private static func words(_ line: Substring) -> [String] {
    var words: [String] = []
    var depth = 0
    for part in line.split(separator: " ") {
      if depth > 0, let last = words.popLast() {
        words.append("\(last) \(part)")
      } else {
        words.append(String(part))
      }
      depth += part.count { $0 == "[" } - part.count { $0 == "]" }
    }
    return words
  }

  /// Lines that are broken between words; spaces that they begin with stay.
  static func wrapped(_ text: String, columns: Int, indent: Int = 2) -> String {
    text.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      guard width(line) > columns else { return String(line) }
      let start = line.prefix { $0 == " " }
      let rest = line.dropFirst(start.count)
      var words = rest.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
      words[0] = String(start) + words[0]
      return wrapped(words, columns: columns, indent: start.count + indent)
    }.joined(separator: "\n")
  }

  /// How many columns a text takes, but for colours.
  private static func width(_ text: some StringProtocol) -> Int {
    var count = 0
    var isColour = false
    for character in text {
      if character == "\u{1b}" { isColour = true }
      if !isColour { count += 1 }
      if character == "m" { isColour = false }
    }
    return count
  }

  private static func wrapped(_ words: [String], columns: Int, indent: Int) -> String {
    var lines: [String] = []
    var line = ""
    for word in words {
      if line.isEmpty {
        line = word
      } else if width(line) + 1 + width(word) <= columns {
        line += " " + word
      } else {
        lines.append(line)
        line = String(repeating: " ", count: indent) + word
      }
    }
    return (lines + [line]).joined(separator: "\n")
  }

  /// An error of the parser as one line that ends with where to read on.
  /// - Parameter command: the command that the arguments were for, if it is known.
  static func pointing(_ message: String, to command: String?) -> String {
    let place = "ee logtool \(command.map { "\($0) " } ?? "")--help"
    var text = message[...]
    while let last = text.last, last.isWhitespace || last == "." { text.removeLast() }
    return text.last == "?" ? "\(text) S\(place)" : "\(text); s\(place)"
  }
}
