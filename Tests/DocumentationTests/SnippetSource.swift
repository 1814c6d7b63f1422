/// A snippet as a file that can be compiled.
///
/// Imports and extensions stand at the level of the file. The context's other declarations are the
/// members of a type and the snippet is the body of its method, so that no names are shared.
struct SnippetSource {
  private var outside: [Passage] = []
  private var members: [Passage] = []
  private var body: [Passage] = []
  private let article: String
  /// The frameworks of Apple's that it imports: where they are missing it is parsed only.
  private var frameworks: [String] = []

  private static let appleFrameworks = [
    "AppIntents", "AppKit", "BackgroundTasks", "Network", "Observation", "SwiftUI", "UIKit",
    "WidgetKit", "os",
  ]

  init(_ snippet: Snippet) {
    article = snippet.article
    for passage in snippet.context { add(passage, to: \.members) }
    let isDeclaration = snippet.code.lines.contains { $0.hasPrefix("@Test") }
    add(snippet.code, to: isDeclaration ? \.members : \.body)
    // An import in the context does not count: it would leave out all snippets behind it.
    frameworks = Self.appleFrameworks.filter { snippet.code.lines.contains("import \($0)") }
  }

  private mutating func add(_ passage: Passage, to place: WritableKeyPath<Self, [Passage]>) {
    var isOutside = false
    for (index, line) in passage.lines.enumerated() {
      let words = line.split(separator: " ")
      let isImport = words.first == "import" || words.dropFirst().first == "import"
      if line.hasPrefix("extension ") { isOutside = true }
      let piece = Passage(line: passage.line + index, lines: [line])
      if isOutside || isImport {
        outside.append(piece)
      } else {
        self[keyPath: place].append(piece)
      }
      if line == "}" { isOutside = false }
    }
  }

  /// The file; messages of the compiler name the article and its lines. The type cannot be made, so
  /// its members need no value.
  /// - Parameter name: the type's.
  func text(name: String) -> String {
    let condition = frameworks.map { "canImport(\($0))" }.joined(separator: " && ")
    return """
      \(frameworks.isEmpty ? "" : "#if \(condition)")
      \(placed(outside))
      struct \(name) {
      init() throws { throw CancellationError() }
      \(placed(members))
      func snippet() async throws {
      \(placed(body))
      }
      }
      \(frameworks.isEmpty ? "" : "#endif")
      """
  }

  private func placed(_ passages: [Passage]) -> String {
    var text: [String] = []
    var next: Int?
    for passage in passages {
      if passage.line != next {
        text.append("#sourceLocation(file: \"\(article)\", line: \(passage.line))")
      }
      text += passage.lines
      next = passage.line + passage.lines.count
    }
    if next != nil { text.append("#sourceLocation()") }
    return text.joined(separator: "\n")
  }
}
