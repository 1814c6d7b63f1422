/// Bugs that are planted for the campaigns are asked for, and nothing else is done with them: the
/// answer is a constant no in an ordinary build.
enum PlantedRules {
  private static let names: Set = ["PlantedBug", "PlantedSyncBug"]

  /// The lines that name them and do not ask for one, but for the files that declare and plant
  /// them.
  static func uses(_ files: [SourceFile]) -> [String] {
    files.flatMap { file -> [String] in
      guard !file.path.contains("Planted") else { return [] }
      let words = file.tokens.map(\.text)
      return file.tokens.indices.filter { index in
        names.contains(words[index])
          && words.dropFirst(index + 1).prefix(4) != [".", "isOn", "(", "."]
      }.map { "\(file.path):\(file.tokens[$0].line)" }
    }
  }

  /// The condition under which a build can make them, wherever else it stands.
  static func conditions(_ files: [SourceFile]) -> [String] {
    files.filter { file in
      !file.path.contains("Planted") && file.lines.contains { $0.contains("#if TIDEMARK_PLANTED") }
    }.map(\.path)
  }
}
