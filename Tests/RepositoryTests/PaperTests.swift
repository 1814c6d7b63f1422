import Testing

@Suite("The papers")
struct PaperTests {
  @Test("the six papers of the repository have 45,000 bytes together at most")
  func length() throws {
    let documents = try Repository.documents.get()
    #expect(Repository.papers.isSubset(of: Set(documents.map(\.path))))
    #expect(DocumentRules.bytes(of: documents, among: Repository.papers) <= 45_000)
  }

  @Test("README names the two commands of the set-up, and is short enough to be read")
  func readme() throws {
    let readme = try #require(try Repository.documents.get().first { $0.path == "README.md" })
    #expect(readme.text.contains("\nTools/demo "))
    #expect(readme.text.contains("\nTools/test "))
    #expect(readme.text.utf8.count <= 13_000)
  }
}
