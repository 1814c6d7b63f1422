import Testing

@Suite("The repository")
struct RepositoryTests {
  private let sources: [SourceFile]
  private let all: [SourceFile]

  init() throws {
    sources = try Repository.sources.get()
    all = try Repository.all.get()
    try #require(sources.count > 20, "the sources were not found")
  }

  @Test("every file of the engine stands in a layer")
  func folders() { #expect(LayerRules.strayFiles(sources) == []) }

  @Test("the engine imports no more than it may, and nothing imports Foundation")
  func imports() { #expect(LayerRules.imports(sources) == []) }

  @Test("no layer of the engine names a type of a higher one")
  func layers() { #expect(LayerRules.upwardNames(sources) == []) }

  @Test("no folders of the engine and of replication lean on each other in a circle")
  func circles() { #expect(LayerRules.circles(sources) == []) }

  @Test("only files in an owner's folder take its lock or name its state type")
  func owners() {
    #expect(OwnerRules.count(sources) == 6)
    #expect(OwnerRules.breaches(sources) == [])
  }

  @Test("no type of the engine has more than 900 lines with all its extensions")
  func typeLength() { #expect(OwnerRules.longTypes(sources, most: 900) == []) }

  @Test("the command line does through the store what any program can do through it")
  func besideStore() { #expect(LayerRules.besideStore(sources) == []) }

  @Test("without its trait nothing looks for feeds in PostgreSQL")
  func traits() { #expect(LayerRules.importsWithoutTrait(all) == []) }

  @Test("the engine reaches disk, time, chance and threads through Platform only")
  func sideDoors() { #expect(LayerRules.sideDoors(sources) == []) }

  @Test("conditions ask for Darwin first, so that Tools/check-apple compiles its branches")
  func platforms() {
    #expect(PlatformRules.conditions(all) == [])
    #expect(PlatformRules.libraries(all) == [])
  }

  @Test("no file has more than 400 lines")
  func fileLength() { #expect(StyleRules.longFiles(all) == []) }

  @Test("no function has more than 60 lines")
  func functionLength() { #expect(StyleRules.longFunctions(all) == []) }

  @Test("no line has more than 100 columns")
  func lineLength() { #expect(StyleRules.longLines(all) == []) }

  @Test("no time limit of a test measures how busy the machine is")
  func timeLimits() { #expect(StyleRules.shortTimeLimits(all) == []) }

  @Test("the top level holds nothing but what belongs there")
  func topLevel() throws { #expect(try Repository.strayNames() == []) }

  @Test("nothing is left for later")
  func leftovers() { #expect(StyleRules.leftovers(all) == []) }

  @Test("no planted bug is in a build that does not ask for them")
  func plantedBugs() {
    #expect(PlantedRules.uses(sources) == [])
    #expect(PlantedRules.conditions(sources) == [])
    #expect(sources.contains { $0.tokens.contains { $0.text == "PlantedBug" } })
  }

  @Test("the paths that documents show exist")
  func documents() throws {
    let documents = try Repository.documents.get()
    try #require(documents.count > 20, "the documents were not found")
    let mentions = documents.flatMap { DocumentRules.mentions(in: $0.text, of: $0.path) }
    try #require(mentions.count > 100, "no paths were found")
    for each in DocumentRules.missing(mentions, among: try Repository.paths()) {
      Issue.record("\(each)")
    }
  }

  @Test("the version of the file format that documents name is the one that is written")
  func formatVersion() throws {
    let constants = try #require(sources.first { $0.path.hasSuffix("/FormatConstants.swift") })
    func number(_ name: String) throws -> Substring {
      let line = try Regex("static let \(name): UInt16 = (\\d+)")
      return try #require(constants.text.firstMatch(of: line)?[1].substring)
    }
    let written = "\(try number("major")).\(try number("minor"))"
    let name = try Regex("(?:[Ff]ile format|(?:is v|V)ersion) (\\d+\\.\\d+)")
    let named = try Repository.documents.get().flatMap { document in
      document.text.matches(of: name).compactMap { match in
        match[1].substring.map { "\(document.path): \($0)" }
      }
    }
    try #require(named.count > 3, "no versions were found")
    #expect(named.filter { !$0.hasSuffix(": \(written)") } == [])
  }

  @Test("every test that a table of capabilities names is there")
  func capabilities() throws {
    let tables = try Repository.files(in: "Tests/Capabilities") { $0.hasSuffix(".md") }
    let names = tables.flatMap { CapabilityTables.names(in: $0.text, path: $0.path) }
    try #require(names.count > 50, "the tables were not found")
    #expect(CapabilityTables.missing(names, in: all) == [])
  }

  @Test("the article that compares with GRDB shows what is built, and ours is no longer")
  func comparison() throws {
    let article = try #require(
      try Repository.articles.get().first { $0.path == ComparisonRules.article })
    func half(_ name: String) throws -> String {
      let path = "\(ComparisonRules.folder)/\(name)/NotesScreen.swift"
      return try #require(all.first { $0.path == path }, "\(path)").text
    }
    let breaches = ComparisonRules.breaches(
      article: article.text, other: try half("GRDBNotes"), ours: try half("TidemarkNotes"))
    #expect(breaches == [])
  }

  @Test("every file that is unsafe says why it is safe")
  func reasons() { #expect(StyleRules.withoutReason(sources) == []) }

  @Test("the files that are unsafe are those in the list, and no others")
  func unsafeList() throws {
    let found = StyleRules.unsafeFiles(sources).map(\.path)
    let listed = try Repository.lines(of: "Tests/RepositoryTests/unsafe-files.txt")
    #expect(Set(found).subtracting(listed).sorted() == [], "not in the list")
    #expect(Set(listed).subtracting(found).sorted() == [], "not unsafe, or gone")
    #expect(listed == listed.sorted())
  }

  @Test("public types have no name that Swift or a framework of Apple's has for a type")
  func takenNames() throws {
    let lines = try Repository.lines(of: "Tests/RepositoryTests/taken-names.txt")
    let names = Set(lines.flatMap { $0.split(separator: " ").map(String.init) })
    try #require(names.count > 300, "the list was not found")
    #expect(NameRules.taken(names, sources) == [])
  }

  @Test("the engine shows no file, clock or other seam for tests beside Tidemark's types")
  func engineTypes() {
    #expect(NameRules.publicEngineTypes(sources) == NameRules.engineTypes)
  }
}
