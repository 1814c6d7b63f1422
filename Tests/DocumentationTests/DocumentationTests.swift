import Testing

@Suite("The documentation")
struct DocumentationTests {
  private let snippets: [Snippet]

  init() throws {
    snippets = try Article.all().flatMap { try $0.snippets() }
  }

  @Test("README and the articles of all modules are searched for snippets")
  func found() {
    let articles = Set(snippets.map(\.article))
    #expect(snippets.count >= 45)
    #expect(articles.isSuperset(of: ["README.md", "Sources/Tidemark/Tidemark.docc/Tidemark.md"]))
    for module in ["Tidemark", "TidemarkSync", "TidemarkHTTP", "TidemarkTestKit"] {
      #expect(articles.contains { $0.hasPrefix("Sources/\(module)/") }, "\(module)")
    }
  }

  @Test(
    "every snippet compiles, with the hidden declarations before it, in each mode of a program",
    arguments: Compiler.Mode.allCases)
  func compiles(mode: Compiler.Mode) throws {
    let code = snippets.filter { !$0.isManifest }
    try #require(code.count >= 40)
    let errors = try Compiler.errors(in: code, mode: mode)
    #expect(errors == [])
  }

  @Test("manifests name products, traits and platforms that the package has")
  func manifests() throws {
    let manifest = try Article.text(of: "Package.swift")
    let parts = snippets.filter(\.isManifest)
    let names = Set(parts.flatMap { $0.code.lines.flatMap(ManifestNames.names) })
    #expect(names.isSuperset(of: ["TidemarkHTTP", "Encryption", ".iOS(.v18)"]))
    #expect(parts.flatMap { ManifestNames.unknown(in: $0, manifest: manifest) } == [])
  }
}
