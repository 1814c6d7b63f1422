/// The screen that the article for those who come from GRDB shows twice: two files of
/// `Tools/Examples/comparison`, which are built and run there.
enum ComparisonRules {
  static let article = "Sources/Tidemark/Tidemark.docc/ComingFromOthers.md"
  static let folder = "Tools/Examples/comparison/Sources"

  /// Reasons for which article and files do not belong together; none when all is well.
  /// - Parameters:
  ///   - article: the article's text.
  ///   - other: the file over GRDB.
  ///   - ours: the file over Tidemark.
  static func breaches(article: String, other: String, ours: String) -> [String] {
    var breaches: [String] = []
    let blocks = blocks(of: article)
    if !blocks.contains(Block(language: "", text: other)) {
      breaches.append("the article does not show the file over GRDB as it is")
    }
    // A block of Swift is compiled by the tests of the documentation besides.
    if !blocks.contains(Block(language: "swift", text: ours)) {
      breaches.append("the article does not show the file over Tidemark as it is")
    }
    if lines(ours) > lines(other) {
      breaches.append("Tidemark needs \(lines(ours)) lines, GRDB \(lines(other))")
    }
    return breaches
  }

  private struct Block: Equatable {
    var language: String
    var text: String
  }

  private static func blocks(of article: String) -> [Block] {
    var blocks: [Block] = []
    var open: Block?
    for line in article.split(separator: "\n", omittingEmptySubsequences: false) {
      if let block = open {
        if line == "```" { blocks.append(block) }
        open = line == "```" ? nil : Block(language: block.language, text: "\(block.text)\(line)\n")
      } else if line.hasPrefix("```") {
        open = Block(language: String(line.dropFirst(3)), text: "")
      }
    }
    return blocks
  }

  /// The lines that say something.
  private static func lines(_ text: String) -> Int {
    text.split(separator: "\n").count { line in
      let words = line.drop { $0 == " " }
      return !words.isEmpty && !words.hasPrefix("//")
    }
  }
}
