import Foundation

/// A source file as text.
struct SourceFile {
  /// From the repository's root.
  let path: String
  let text: String
  /// The words and signs, without comments and the text of string literals.
  let tokens: [Token]

  init(_ path: String, _ text: String) {
    self.path = path
    self.text = text
    tokens = Token.tokens(of: SwiftScanner.code(of: text))
  }

  var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

  /// The modules that it imports.
  var imports: [String] {
    let kinds: Set = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]
    return tokens.indices.dropLast().compactMap { index in
      guard tokens[index].text == "import", tokens[index].depth == 0 else { return nil }
      return tokens[(index + 1)...].first { !kinds.contains($0.text) }?.text
    }
  }

  /// The names of the types that it declares.
  func types(topLevelOnly: Bool) -> [String] {
    let kinds: Set = ["struct", "class", "enum", "protocol", "actor", "typealias"]
    return zip(tokens, tokens.dropFirst()).compactMap { keyword, name in
      guard kinds.contains(keyword.text), keyword.before != ".", name.isTypeName,
        !topLevelOnly || keyword.depth == 0
      else { return nil }
      return name.text
    }
  }

  /// The words that a condition holds for, with the sign after them, as "path:line: word".
  func places(where condition: (Token, _ next: String) -> Bool) -> [String] {
    tokens.indices.compactMap { index in
      let next = index + 1 < tokens.count ? tokens[index + 1].text : ""
      guard tokens[index].isWord, condition(tokens[index], next) else { return nil }
      return "\(path):\(tokens[index].line): \(tokens[index].text)"
    }
  }
}

enum Repository {
  /// The files that the package and its tools are made of.
  static let sources = Result { try files(in: "Sources") }
  /// All Swift files.
  static let all = Result {
    try sources.get() + files(in: "Tests") + files(in: "Tools")
  }

  /// The articles of the modules.
  static let articles = Result { try files(in: "Sources") { $0.hasSuffix(".md") } }

  /// What somebody reads who comes to the repository; all together have a bound.
  static let papers: Set = [
    "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "Sources/README.md",
    "Tools/Campaigns/README.md", "Tools/Benchmarks/README.md",
  ]

  /// The articles, the decisions, the papers and SECURITY.md.
  static let documents = Result {
    let others = papers.union(["SECURITY.md"]).filter { !$0.hasPrefix("Sources/") }
    return try files(in: "Sources") { $0.hasSuffix(".md") }
      + others.sorted().map { path in
        SourceFile(path, try String(contentsOf: root.appending(path: path), encoding: .utf8))
      }
  }

  /// All files and folders, from the root, without what the build has made.
  static func paths() throws -> Set<String> {
    var paths: Set<String> = [".ci/run"]
    for name in try FileManager.default.contentsOfDirectory(atPath: root.path)
    where !name.hasPrefix(".") {
      paths.insert(name)
      let below = FileManager.default.enumerator(atPath: root.appending(path: name).path)
      while let path = below?.nextObject() as? String {
        if (path as NSString).lastPathComponent.hasPrefix(".") {
          below?.skipDescendants()
        } else {
          paths.insert(name + "/" + path)
        }
      }
    }
    return paths
  }

  /// Names at the top level beyond those that belong there; git ignores what tools leave there.
  static func strayNames() throws -> [String] {
    let belongs: Set = [
      "Package.swift", "Sources", "Tests", "Tools", "README.md", "CHANGELOG.md",
      "CONTRIBUTING.md", "SECURITY.md", "LICENSE",
    ]
    let ignored = try lines(of: ".gitignore")
    return try FileManager.default.contentsOfDirectory(atPath: root.path).filter { name in
      !belongs.contains(name) && !name.hasPrefix(".")
        && !ignored.contains { pattern in
          let parts = pattern.split(separator: "*", maxSplits: 1, omittingEmptySubsequences: false)
            .map { $0.hasSuffix("/") ? $0.dropLast() : $0 }
          return parts.count == 2
            ? name.hasPrefix(parts[0]) && name.hasSuffix(parts[1]) : name == pattern
        }
    }.sorted()
  }

  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  /// All Swift files in a folder and below, or others that are wanted, in the order of their paths.
  static func files(
    in folder: String, where isWanted: (String) -> Bool = { $0.hasSuffix(".swift") }
  ) throws -> [SourceFile] {
    let base = root.appending(path: folder)
    guard let found = FileManager.default.enumerator(atPath: base.path) else { return [] }
    var paths: [String] = []
    for case let path as String in found {
      // Hidden folders hold what the build made.
      if (path as NSString).lastPathComponent.hasPrefix(".") {
        found.skipDescendants()
      } else if isWanted(path) {
        paths.append(path)
      }
    }
    return try paths.sorted().map { path in
      let text = try String(contentsOf: base.appending(path: path), encoding: .utf8)
      return SourceFile(folder + "/" + path, text)
    }
  }

  /// The lines of a text file that hold something.
  static func lines(of path: String) throws -> [String] {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
      .split(separator: "\n").map(String.init).filter { !$0.hasPrefix("#") }
  }
}
