import Foundation

/// Paths that documents show to readers.
enum DocumentRules {
  /// A path in a document, with the place where it stands.
  struct Mention: Hashable {
    var path: String
    var document: String
    var line: Int
    /// Whether the path is the whole one from the root, not the end of one.
    var isWhole = false
  }

  /// The paths of a document: source files and places below the top level between backticks or at
  /// the beginning of a line of a code block, and the targets of links.
  static func mentions(in text: String, of document: String) -> [Mention] {
    var found: [Mention] = []
    var isCode = false
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      if line.hasPrefix("```") {
        isCode.toggle()
        continue
      }
      let isArticle = document.contains(".docc/")
      let texts = isCode ? [String(line)] : quoted(line) + (isArticle ? links(line) : [])
      for path in texts.compactMap(path) {
        found.append(Mention(path: path, document: document, line: index + 1))
      }
      // Links of articles are names that docc looks up; elsewhere they lead to files.
      guard !isCode, !isArticle else { continue }
      for path in links(line).compactMap({ target(of: $0, in: document) }) {
        found.append(Mention(path: path, document: document, line: index + 1, isWhole: true))
      }
    }
    return found
  }

  /// The bytes that the texts of some documents have together.
  static func bytes(of documents: [SourceFile], among paths: Set<String>) -> Int {
    documents.filter { paths.contains($0.path) }.reduce(0) { $0 + $1.text.utf8.count }
  }

  /// The mentions that no file or folder stands for.
  ///
  /// - Parameter known: all files and folders, from the repository's root.
  static func missing(_ mentions: [Mention], among known: Set<String>) -> [String] {
    var ends: Set<String> = []
    for path in known {
      let parts = path.split(separator: "/")
      for start in parts.indices { ends.insert(parts[start...].joined(separator: "/")) }
    }
    return mentions.filter { mention in
      let isFromRoot = mention.isWhole || roots.contains { mention.path.hasPrefix($0) }
      return !(isFromRoot ? known : ends).contains(mention.path)
    }.map { "\($0.document):\($0.line): \($0.path)" }
  }

  private static let roots = ["Sources/", "Tests/", "Tools/", ".ci/"]
  private static let endings = [".swift", ".md", ".py"]

  /// The path that a quoted text begins with; nil when it is none of the repository's.
  private static func path(in text: String) -> String? {
    let word = text.prefix { $0 != " " && $0 != "#" }
    // The build's own folders are made later, and names in capitals stand for others.
    guard !word.isEmpty, !word.contains(".build"), !word.contains("*"), !word.contains(":"),
      !word.contains("<"), word.last != "/" || word.count > 1
    else { return nil }
    let path = String(word.last == "/" ? word.dropLast() : word)
    let isNamed = roots.contains { path.hasPrefix($0) } || endings.contains { path.hasSuffix($0) }
    let isPlain = path.allSatisfy {
      $0.isASCII && ($0.isLetter || $0.isNumber || "._+/-".contains($0))
    }
    let name = path.split(separator: "/").last?.prefix { $0 != "." } ?? ""
    let isPlaceholder = name.allSatisfy { $0.isUppercase || $0 == "-" }
    return isNamed && isPlain && !isPlaceholder && !path.hasPrefix("/") ? path : nil
  }

  /// The file that a link leads to, from the root; nil where it leads out of the repository or
  /// within its document.
  private static func target(of link: String, in document: String) -> String? {
    let path = link.prefix { $0 != "#" }
    guard !path.isEmpty, !path.contains(":") else { return nil }
    var parts = document.split(separator: "/").dropLast()
    for part in path.split(separator: "/") where part != "." {
      if part != ".." {
        parts.append(part)
      } else if parts.popLast() == nil {
        return String(path)
      }
    }
    return parts.joined(separator: "/")
  }

  private static func quoted(_ line: Substring) -> [String] {
    let parts = line.split(separator: "`", omittingEmptySubsequences: false)
    return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
  }

  private static func links(_ line: Substring) -> [String] {
    line.components(separatedBy: "](").dropFirst().map { String($0.prefix { $0 != ")" }) }
  }
}
