/// Bugs that are planted for the campaigns must not be in an ordinary build.
enum PlantedRules {
  private static let names: Set = ["PlantedBug", "PlantedSyncBug"]
  private static let condition = ["#if", "TIDEMARK_PLANTED"]

  /// The lines that name them outside of the condition that leaves them out.
  static func uses(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      let named = Set(file.tokens.filter { names.contains($0.text) }.map(\.line))
      guard !named.isEmpty else { return [] }
      var result: [String] = []
      /// Whether each open block is one of those.
      var blocks: [Bool] = []
      for (index, line) in file.lines.enumerated() {
        let words = line.split(separator: " ")
        switch words.first {
        case "#if": blocks.append(words.elementsEqual(condition) { $0 == $1 })
        case "#else", "#elseif": if blocks.popLast() != nil { blocks.append(false) }
        case "#endif": _ = blocks.popLast()
        default:
          if named.contains(index + 1), !blocks.contains(true) {
            result.append("\(file.path):\(index + 1)")
          }
        }
      }
      return result
    }
  }
}
