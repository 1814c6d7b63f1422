import Foundation

/// Paths that documents show to readers.
enum DocumentRules {
  /// A path in a document, with the place where it stands.
  struct Mention: Hashable {
    var path: String
    var document: String
    var line: Int
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
      let candidates = isCode ? [String(line)] : quoted(line) + links(line)
      for path in candidates.compactMap(path) {
        found.append(Mention(path: path, document: document, line: index + 1))
      }
    }
    return found
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
      let isFromRoot = roots.contains { mention.path.hasPrefix($0) }
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

  private static func quoted(_ line: Substring) -> [String] {
    let parts = line.split(separator: "`", omittingEmptySubsequences: false)
    return parts.indices.filter { $0 % 2 == 1 }.map { String(parts[$0]) }
  }

  private static func links(_ line: Substring) -> [String] {
    line.components(separatedBy: "](").dropFirst().map { String($0.prefix { $0 != ")" }) }
  }
}
