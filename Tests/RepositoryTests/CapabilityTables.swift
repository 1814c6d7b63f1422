/// The tables below `Tests/Capabilities`, which name a test for each capability.
enum CapabilityTables {
  /// A test that a table names, as "Suite" or "Suite.function".
  struct Name: Hashable {
    var place: String
    var suite: String
    var function: String?
  }

  /// The tests that the tables of a text name in their last column, headed "Test".
  static func names(in text: String, path: String) -> [Name] {
    var names: [Name] = []
    var isTable = false
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      guard line.hasPrefix("|") else {
        isTable = false
        continue
      }
      let last = line.split(separator: "|").last.map { words(String($0)) } ?? []
      if last == ["Test"] {
        isTable = true
      } else if isTable, last.contains(where: { !$0.allSatisfy { $0 == "-" } }) {
        names += last.map { word in
          let parts = word.split(separator: ".").map(String.init)
          return Name(
            place: "\(path):\(index + 1)", suite: parts.first ?? "",
            function: parts.count > 1 ? parts[1] : nil)
        }
      }
    }
    return names
  }

  private static func words(_ cell: String) -> [String] {
    cell.split { $0 == "," || $0 == " " }.map(String.init)
  }

  /// Names of which there is no test, as "file:line: name".
  static func missing(_ names: [Name], in tests: [SourceFile]) -> [String] {
    var functions: [String: Set<String>] = [:]
    for file in tests {
      let tokens = file.tokens
      let declared = zip(tokens, tokens.dropFirst()).filter { $0.0.text == "func" }.map(\.1.text)
      for type in file.types(topLevelOnly: true) {
        functions[type, default: []].formUnion(declared)
      }
    }
    return names.compactMap { name in
      let known = functions[name.suite]
      let isThere = name.function.map { known?.contains($0) ?? false } ?? (known != nil)
      return isThere
        ? nil : "\(name.place): \(name.suite)\(name.function.map { "." + $0 } ?? "")"
    }
  }
}
