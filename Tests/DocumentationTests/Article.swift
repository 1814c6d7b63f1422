import Foundation

/// A text of the documentation.
struct Article {
  /// From the repository's root.
  let path: String
  let text: String

  /// README and the articles of all catalogues.
  static func all() throws -> [Article] {
    let sources = root.appending(path: "Sources")
    var paths = ["README.md"]
    for target in try names(in: sources) {
      let catalogue = "Sources/\(target)/\(target).docc"
      for name in try names(in: root.appending(path: catalogue)) where name.hasSuffix(".md") {
        paths.append("\(catalogue)/\(name)")
      }
    }
    return try paths.map { Article(path: $0, text: try text(of: $0)) }
  }

  /// The text of a file of the repository.
  static func text(of path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()

  private static func names(in folder: URL) throws -> [String] {
    guard FileManager.default.fileExists(atPath: folder.path) else { return [] }
    return try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
  }
}

/// Lines of an article that stand together.
struct Passage: Equatable {
  /// The number of its first line.
  let line: Int
  let lines: [String]
}

/// A block of Swift in an article.
struct Snippet {
  let article: String
  let code: Passage
  /// The hidden declarations before it in its article.
  let context: [Passage]

  /// Whether it is a manifest, or a part of one, whose first line says so.
  var isManifest: Bool {
    let first = code.lines.first ?? ""
    return ["// Package.swift", "// swift-tools-version"].contains { first.hasPrefix($0) }
  }
}

struct DocumentationError: Error, Equatable, CustomStringConvertible {
  let description: String
}

extension Article {
  private static let fence = "```"
  private static let contextStart = "<!-- context"
  private static let contextEnd = "-->"

  /// The blocks of Swift.
  /// - Throws: where a block or a context has no end.
  func snippets() throws -> [Snippet] {
    var found: [Snippet] = []
    var context: [Passage] = []
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    var index = 0
    while index < lines.count {
      let isContext = lines[index] == Self.contextStart
      let opening = lines[index].drop { $0 == " " }
      guard isContext || opening.hasPrefix(Self.fence) else {
        index += 1
        continue
      }
      let end = isContext ? Self.contextEnd : Self.fence
      guard let close = lines[(index + 1)...].firstIndex(where: { $0.drop { $0 == " " } == end })
      else {
        throw DocumentationError(description: "\(path):\(index + 1): this has no end")
      }
      let passage = Passage(line: index + 2, lines: Array(lines[(index + 1)..<close]))
      if isContext {
        context.append(passage)
      } else if opening.dropFirst(Self.fence.count).lowercased().hasPrefix("swift") {
        found.append(Snippet(article: path, code: passage, context: context))
      }
      index = close + 1
    }
    return found
  }
}
