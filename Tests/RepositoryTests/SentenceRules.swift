/// Comments and the names of tests begin with their subject, not with a word that puts it off.
enum SentenceRules {
  private static let words: Set = ["what", "who", "those", "of", "whatever", "whoever"]

  /// Comments that begin otherwise, as "path:line".
  static func comments(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      let marker = file.isScript ? "#" : "//"
      /// A line that only goes on with the comment above begins none.
      var goesOn = false
      return file.lines.enumerated().compactMap { index, line in
        let begins = !goesOn
        let text = comment(in: line, marker)
        let isWhole = line.drop { $0 == " " }.hasPrefix(marker) && !line.hasPrefix("#!")
        goesOn = isWhole && text.map { !$0.isEmpty } ?? false
        let summary = (begins ? text : nil) ?? (file.isScript ? docstring(line) : nil)
        guard let summary, putsOff(summary) else { return nil }
        return "\(file.path):\(index + 1)"
      }
    }
  }

  /// Tests and suites whose names begin otherwise, as "path:line".
  static func testNames(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      /// The attribute of a long name ends the line above it.
      var isAwaited = false
      return file.lines.enumerated().compactMap { index, line in
        let text = line.drop { $0 == " " }
        let attribute = ["@Test(", "@Suite("].first { text.hasPrefix($0) }
        let rest = attribute.map { text.dropFirst($0.count) } ?? text
        let isName = (attribute != nil || isAwaited) && rest.hasPrefix("\"")
        isAwaited = attribute != nil && rest.isEmpty
        return isName && putsOff(rest.dropFirst()) ? "\(file.path):\(index + 1)" : nil
      }
    }
  }

  private static func putsOff(_ text: Substring) -> Bool {
    words.contains(text.prefix { $0.isLetter }.lowercased())
  }

  /// The text of the comment in a line; nil where there is none, or where the mark may stand within
  /// a string.
  private static func comment(in line: Substring, _ marker: String) -> Substring? {
    // Most lines have none, which is found out faster byte by byte.
    guard let first = marker.utf8.first, line.utf8.contains(first),
      let start = line.firstRange(of: marker)
    else { return nil }
    let before = line[..<start.lowerBound]
    let after = line[start.upperBound...]
    guard before.allSatisfy({ $0 == " " }) || before.hasSuffix(" ") && !after.contains("\"") else {
      return nil
    }
    return after.drop { $0 == "/" || $0 == " " }
  }

  /// The text behind the quotes that a docstring begins with.
  private static func docstring(_ line: Substring) -> Substring? {
    let text = line.drop { $0 == " " }
    return text.hasPrefix("\"\"\"") ? text.dropFirst(3) : nil
  }
}
