import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Stores as a killed process leaves them: copies of the directory of an open engine.
@Suite("Stores of killed writers")
struct KilledStoreTests {
  private struct Killed {
    var files: StoreFiles
    var expected: ExpectedStore
    var durableSequence: UInt64
    var durableOffset: Int
    /// Where each batch ends: offset of the log and last sequence.
    var batches: [UInt64]
  }

  private func killed() throws -> Killed {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try SampleStore.fill(engine, keys: 8, rounds: 1, largest: 900)
    try engine.writer.flush()
    let status = try engine.status()
    var batches: [UInt64] = [engine.reader.lastSequence]
    for number in 0..<6 {
      var batch = OperationBatch()
      for part in 0...number {
        let value = bytes(String(repeating: "part \(part) ", count: 60))
        try batch.add(.put, key: bytes("batch-\(number)-\(part)").rawSpan, value: value.rawSpan)
      }
      try engine.commit(batch)
      batches.append(engine.reader.lastSequence)
    }
    let expected = try ExpectedStore(engine)
    let files = try StoreFiles(disk)
    try engine.close()
    return Killed(
      files: files, expected: expected, durableSequence: status.durableSequence,
      durableOffset: status.durableOffset, batches: batches)
  }

  @Test("a log cut anywhere behind its durable part verifies clean and opens with whole batches")
  func cut() throws {
    let killed = try killed()
    let name = killed.files.segments[0]
    let full = try #require(killed.files.files[name])
    let used = try #require(full.lastIndex { $0 != 0 }) + 1
    #expect(killed.durableOffset > 8192 && killed.durableOffset < used)
    #expect(killed.durableSequence == killed.batches[0])
    for length in killed.durableOffset...(used + 9) where length % 19 == 0 || length > used - 9 {
      // Cut off, or never written: then zeros stand there.
      for padding in [0, 700] {
        var files = killed.files
        files.files[name] = Array(full.prefix(length)) + [UInt8](repeating: 0, count: padding)
        let comment: Comment = "\(length) bytes and \(padding) zeros"
        let disk = try files.disk()
        #expect(try StoreFiles.verify(disk).findings == [], comment)
        #expect(try StoreFiles(disk).files == files.files, comment)
        guard length % 3 == 0 else { continue }
        let engine = try StoreFiles.open(disk, .write)
        let last = engine.reader.lastSequence
        #expect(killed.batches.contains(last), comment)
        let found = try ExpectedStore(engine)
        let wanted = killed.expected.entries.filter { $0.key <= last }
        #expect(found.entries == wanted, comment)
        try engine.put("more", "value")
        try engine.close()
        #expect(try StoreFiles.verify(disk).findings == [], comment)
      }
    }
  }

  @Test("damage before other frames of a killed writer is found and recorded")
  func damaged() throws {
    let killed = try killed()
    let name = killed.files.segments[0]
    for offset in stride(from: 8192, to: killed.durableOffset - 64, by: 41) {
      let comment: Comment = "byte \(offset)"
      let disk = try killed.files.flipping(bit: 3, of: offset, in: name).disk()
      let report = try StoreFiles.verify(disk)
      #expect(report.findings.map(\.file) == [name], comment)
      #expect(report.isRecorded, comment)
      if let finding = report.findings.first {
        #expect(finding.offset <= offset, comment)
        #expect(finding.sequences?.lowerBound ?? 0 > 0, comment)
      }
      #expect(throws: TidemarkError.self, comment) { try StoreFiles.open(disk, .write) }
    }
  }

  /// The disk of a machine that does not tell when it started, as in a strict sandbox.
  private struct UntoldBoot: ForwardingDisk {
    let base: any FileSystem

    func bootIdentifier() throws(FileSystemError) -> [UInt8] {
      throw FileSystemError(.bootIdentifier, path: "", number: ErrorNumber.notPermitted)
    }
  }

  @Test("where the system does not tell when it started, a store opens as after a power cut")
  func untoldBoot() throws {
    let killed = try killed()
    let name = killed.files.segments[0]
    var refused = 0
    for offset in stride(from: killed.durableOffset, to: killed.durableOffset + 2_000, by: 41) {
      let comment: Comment = "byte \(offset)"
      let files = killed.files.flipping(bit: 3, of: offset, in: name)
      do { try StoreFiles.open(files.disk(), .write).close() } catch { refused += 1 }
      let disk = UntoldBoot(base: try files.disk())
      #expect(try StoreFiles.verify(disk).findings == [], comment)
      let engine = try StoreFiles.open(disk, .write)
      #expect(killed.batches.contains(engine.reader.lastSequence), comment)
      try engine.close()
    }
    #expect(refused > 0, "no byte was in a frame before others")
  }

  @Test("where the system does not tell when it started, a store can be created and opened again")
  func untoldBootAtCreation() throws {
    let disk = UntoldBoot(base: MemoryFileSystem())
    for access in [EngineConfiguration.Access.create, .write, .write] {
      let engine = try StoreFiles.open(disk, access)
      try engine.put("a", "\(access)")
      try engine.writer.sealSegments()
      try engine.put("b", "\(access)")
      try engine.close()
    }
    #expect(try StoreFiles.verify(disk).findings == [])
    let engine = try StoreFiles.open(disk, .readOnly)
    #expect(try engine.get("b") == "write")
    try engine.close()
  }

  @Test("a store killed between its first steps verifies clean or is no store yet")
  func creation() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    let created = try StoreFiles(disk)
    #expect(try StoreFiles.verify(try created.disk()).findings == [])
    let first = created.removing("MANIFEST.1")
    #expect(try StoreFiles.verify(try first.disk()).findings == [])
    try engine.put("a", "1")
    #expect(try StoreFiles.verify(try StoreFiles(disk).disk()).findings == [])
    // While the engine is open, too.
    #expect(try StoreFiles.verify(disk).findings == [])
    try engine.close()
  }

  @Test("a creation that stopped within MANIFEST is no store yet, and can be done again")
  func creationWithinManifest() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    let created = try StoreFiles(disk)
    let whole = try #require(created.files["MANIFEST.0"])
    for content in [[], Array(whole.prefix(4096)), [UInt8](repeating: 0, count: whole.count)] {
      let comment: Comment = "\(content.count) bytes"
      var files = created.removing("MANIFEST.1")
      files.files["MANIFEST.0"] = content
      let half = try files.disk()
      let errors = [
        #expect(throws: TidemarkError.self) { try StoreFiles.verify(half) },
        #expect(throws: TidemarkError.self) { try StoreFiles.open(half, .readOnly) },
        #expect(throws: TidemarkError.self) { try StoreFiles.open(half, .write) },
      ]
      #expect(errors.allSatisfy { $0?.code == .notAStore }, comment)
      #expect(try StoreFiles(half).files == files.files, comment)
      let again = try StoreFiles.open(half, .create)
      try again.put("a", "1")
      try again.close()
      #expect(try StoreFiles.verify(half).findings == [], comment)
      // The same within the second copy.
      files = created
      files.files["MANIFEST.1"] = content
      let isCut = !content.allSatisfy { $0 == 0 }
      #expect(try StoreFiles.verify(try files.disk()).findings.count == (isCut ? 1 : 0), comment)
    }
    try engine.close()
  }

  @Test("a store with both copies of MANIFEST lost is not taken for one that was never made")
  func lostIsNotHalfCreated() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    var empty = try StoreFiles(disk)
    try engine.put("a", "1")
    var full = try StoreFiles(disk).removing("MANIFEST.1")
    try engine.close()
    full.files["MANIFEST.0"] = []
    empty.files["MANIFEST.0"] = []
    empty.files["MANIFEST.1"]?[100] ^= 1
    for files in [full, empty] {
      let lost = try files.disk()
      #expect(try StoreFiles.verify(lost).findings.count == 2)
      let error = #expect(throws: TidemarkError.self) { try StoreFiles.open(lost, .write) }
      #expect(error?.code == .damaged)
    }
  }
}
