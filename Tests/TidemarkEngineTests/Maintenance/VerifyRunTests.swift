import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Verifying sorted runs")
struct VerifyRunTests {
  @Test("a bit flipped in a sorted run is a finding for rebuild, and does not keep from writing")
  func flipped() throws {
    let (files, expected) = try SampleStore.small()
    let name = try #require(files.files.keys.filter { $0.hasSuffix(".idx") }.max())
    let count = try #require(files.files[name]).count
    for offset in stride(from: 0, to: count, by: 37) {
      let damaged = files.flipping(bit: offset % 8, of: offset, in: name)
      let disk = try damaged.disk()
      let report = try StoreFiles.verify(disk)
      #expect(report.findings.map(\.file) == [name], "byte \(offset)")
      #expect(report.findings.allSatisfy { $0.remedy.contains("rebuild") })
      #expect(report.findings.allSatisfy { !$0.isDamageToAcknowledged })
      #expect(try StoreFiles(disk).files == damaged.files)
      guard offset % 5 == 0 else { continue }
      let engine = try StoreFiles.open(disk, .write)
      #expect(try engine.get("last") == "one")
      #expect(
        engine.reader.liveKeys == expected.newest.keys.filter { expected.value($0) != nil }.count)
      try engine.close()
    }
  }

  @Test("a missing sorted run is a finding for rebuild")
  func missing() throws {
    let (files, _) = try SampleStore.small()
    let name = try #require(files.files.keys.first { $0.hasSuffix(".idx") })
    let report = try StoreFiles.verify(try files.removing(name).disk())
    #expect(report.findings.map(\.file) == [name])
    #expect(report.findings.first?.isDamageToAcknowledged == false)
  }

  /// A store whose last entry before the sorted run is one of the given.
  private func store(_ last: (Engine) throws -> Void) throws -> StoreFiles {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    for number in 0..<40 { try engine.put("key-\(number)", "value") }
    try last(engine)
    try engine.checkpointer.writeRun()
    try engine.close()
    return try StoreFiles(disk)
  }

  @Test("a sorted run that is whole and says something else than the log is found")
  func contradicting() throws {
    let changes: [(Engine) throws -> Void] = [
      { try $0.put("key-7", "other") }, { try $0.put("key-8", "other") },
      { try $0.delete("key-7") }, { try $0.put("new", "value") },
    ]
    let stores = try changes.map { try store($0) }
    let name = try #require(stores[0].files.keys.first { $0.hasSuffix(".idx") })
    for (i, log) in stores.enumerated() {
      for (j, run) in stores.enumerated() {
        var mixed = log
        mixed.files[name] = run.files[name]
        let findings = try StoreFiles.verify(try mixed.disk()).findings
        #expect(findings.map(\.file) == (i == j ? [] : [name]), "log \(i), sorted run \(j)")
      }
    }
  }
}
