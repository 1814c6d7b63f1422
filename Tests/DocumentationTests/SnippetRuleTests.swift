import Testing

/// The checks of the documentation, on texts that break them.
@Suite("Rules for snippets")
struct SnippetRuleTests {
  private func snippets(_ text: String) throws -> [Snippet] {
    try Article(path: "A.md", text: text).snippets()
  }

  @Test("a snippet that does not compile is refused with its article and line")
  func broken() throws {
    let text = """
      # An article

      <!-- context
      import Tidemark
      let store: Store
      -->

      ```swift
      let good = try store.text(forKey: "a")
      ```

      ```
      no Swift
      ```

      ```swift
      let text = try store.text(forKey: "a")
      let bad = try store.txt(forKey: "a")
      ```
      """
    let errors = try Compiler.errors(in: try snippets(text))
    #expect(errors == ["A.md:18:21: error: value of type 'Store' has no member 'txt'"])
  }

  @Test("declarations of one snippet are unknown to the next one")
  func separate() throws {
    let text = """
      ```swift
      struct Note { var text = "" }
      let note = Note()
      ```

      ```swift
      let other = note
      ```
      """
    let errors = try Compiler.errors(in: try snippets(text))
    #expect(errors == ["A.md:7:13: error: cannot find 'note' in scope"])
  }

  @Test("a context counts for the snippets behind it only")
  func contextOrder() throws {
    let text = "```swift\n1\n```\n<!-- context\nlet a: Int\n-->\n```swift\n2\n```\n"
    let found = try snippets(text)
    #expect(found.map(\.context.count) == [0, 1])
    #expect(found.last?.context.first == Passage(line: 5, lines: ["let a: Int"]))
  }

  @Test(
    "a snippet or a context without an end is refused with its line",
    arguments: [
      "text\n```swift\nlet a = 1\n", "text\n<!-- context\nlet a: Int\n```swift\n1\n```\n",
    ])
  func unended(text: String) {
    #expect(throws: DocumentationError(description: "A.md:2: this has no end")) {
      try snippets(text)
    }
  }

  @Test("a snippet that imports a framework of Apple's is left to systems that have it")
  func appleFrameworks() throws {
    let found = try snippets("```swift\nimport Network\nlet a = NWPathMonitor()\n```\n")
    let source = SnippetSource(try #require(found.first)).text(name: "A")
    #expect(source.hasPrefix("#if canImport(Network)\n"))
    #expect(source.hasSuffix("#endif"))
  }

  @Test("a product, trait or platform that the package has not is refused with its line")
  func manifests() throws {
    let manifest = """
      platforms: [.iOS(.v18)], products: [.library(name: "Tidemark", targets: ["Tidemark"])],
      traits: [.trait(name: "Encryption")]
      """
    let text = """
      ```swift
      // Package.swift
      platforms: [.iOS(.v18), .macOS(.v10)], traits: ["Encryption", "Speed"]
      .product(name: "Tidemark", package: "tidemark"),
      .product(name: "Tidemarks", package: "tidemark"),
      ```
      """
    let found = try #require(try snippets(text).first)
    #expect(found.isManifest)
    #expect(
      ManifestNames.unknown(in: found, manifest: manifest)
        == ["A.md:3: Speed", "A.md:3: .macOS(.v10)", "A.md:5: Tidemarks"])
  }
}
