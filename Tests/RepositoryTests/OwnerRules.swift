/// The engine's state has owners: nobody else takes their locks or handles what these guard.
enum OwnerRules {
  private static let engine = "Sources/TidemarkEngine/Engine/"

  /// An owner, as the code declares it.
  private struct Owner {
    var folder: String
    /// The properties that hold its locks, but for private ones.
    var locks: Set<String>
    /// The types of what they guard.
    var states: Set<String>
  }

  /// How many classes are owners with a lock.
  static func count(_ files: [SourceFile]) -> Int { owners(files).count }

  /// Places outside of an owner's folder that take its lock, or name the type of its state.
  static func breaches(_ files: [SourceFile]) -> [String] {
    owners(files).flatMap { owner in
      files.filter { folder(of: $0.path) != owner.folder }.flatMap { file in
        file.places { token, next in
          token.before == "." && next == "." && owner.locks.contains(token.text)
            || owner.states.contains(token.text)
        }
      }
    }
  }

  /// The classes that are declared as owners, with the locks among their stored properties.
  private static func owners(_ files: [SourceFile]) -> [Owner] {
    files.filter { $0.path.hasPrefix(engine) }.compactMap { file in
      let tokens = file.tokens
      guard let head = tokens.indices.first(where: { tokens[$0].text == "StateOwner" }),
        tokens[..<head].contains(where: { $0.text == "class" })
      else { return nil }
      var owner = Owner(folder: folder(of: file.path), locks: [], states: [])
      var hasLock = false
      for index in tokens.indices.dropFirst(3)
      where ["Lock", "Monitor"].contains(tokens[index].text) {
        // A property of the class itself: `let NAME: Lock<STATE>` or `let NAME = Lock(STATE())`.
        let isGeneric = tokens[index - 1].text == ":"
        guard tokens[index].depth == 1, tokens[index - 3].text == "let",
          isGeneric || tokens[index - 1].text == "=", index + 2 < tokens.count
        else { continue }
        // The compiler keeps others from a private one.
        if index < 4 || tokens[index - 4].text != "private" {
          owner.locks.insert(tokens[index - 2].text)
        }
        hasLock = true
        let state = tokens[index + 2].text
        if state != "State", tokens[index + 2].isTypeName { owner.states.insert(state) }
      }
      return hasLock ? owner : nil
    }
  }

  private static func folder(of path: String) -> String {
    path.split(separator: "/").dropLast().joined(separator: "/")
  }

  /// Types of the engine with more lines than they may have, with all their extensions.
  static func longTypes(_ files: [SourceFile], most: Int) -> [String] {
    let declared = Set(
      files.filter { $0.path.hasPrefix(engine) }.flatMap { $0.types(topLevelOnly: true) })
    var lines: [String: Int] = [:]
    for file in files {
      for (name, count) in extents(in: file) where declared.contains(name) {
        lines[name, default: 0] += count
      }
    }
    return lines.filter { $0.value > most }.map { "\($0.key): \($0.value) lines" }.sorted()
  }

  /// The name and the length in lines of each type and extension that a file declares at top level.
  private static func extents(in file: SourceFile) -> [(name: String, lines: Int)] {
    let kinds: Set = ["struct", "class", "enum", "protocol", "actor", "extension"]
    var found: [(name: String, lines: Int)] = []
    var open: (name: String, line: Int)?
    for (token, next) in zip(file.tokens, file.tokens.dropFirst() + file.tokens.suffix(1))
    where token.depth == 0 {
      if kinds.contains(token.text), next.isTypeName { open = (next.text, token.line) }
      if token.text == "}", let type = open {
        found.append((type.name, token.line - type.line + 1))
        open = nil
      }
    }
    return found
  }
}
