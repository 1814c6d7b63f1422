import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Verifying")
struct VerifyTests {
  @Test("a healthy store has no findings, and verifying it writes nothing")
  func healthy() throws {
    for (files, expected) in [try SampleStore.small(), try SampleStore.large()] {
      let disk = try files.disk()
      let report = try StoreFiles.verify(disk)
      #expect(report.findings == [])
      #expect(report.entries == expected.entries.count)
      #expect(report.lastSequence == expected.entries.keys.max())
      #expect(report.runs > 0)
      #expect(try StoreFiles(disk).files == files.files)
    }
  }

  @Test("the last segment cut at any length is found, also by opening")
  func cut() throws {
    let (files, expected) = try SampleStore.small()
    let name = try #require(files.segments.last)
    let full = try #require(files.files[name]).count
    for length in 0..<full where length % 9 == 0 || length > full - 200 {
      let cut = files.cutting(name, to: length)
      let disk = try cut.disk()
      let comment: Comment = "cut to \(length) of \(full) bytes"
      #expect(throws: TidemarkError.self, comment) { try StoreFiles.open(disk, .write) }
      guard length % 5 == 0 else { continue }
      let report = try StoreFiles.verify(disk)
      let finding = report.findings.first { $0.message.contains("cut") }
      #expect(finding?.file == name && finding?.offset == length, comment)
      #expect(finding?.sequences?.upperBound == expected.entries.keys.max(), comment)
      #expect(report.isRecorded, comment)
    }
  }

  @Test("a sealed segment that is missing or has bytes behind its end is found")
  func missingAndLonger() throws {
    let (files, _) = try SampleStore.large()
    let name = files.segments[0]
    let report = try StoreFiles.verify(try files.removing(name).disk())
    #expect(report.findings.map(\.file) == [name])
    #expect(report.isRecorded)
    var longer = files
    longer.files[name]?.append(0)
    let other = try StoreFiles.verify(try longer.disk())
    #expect(other.findings.map(\.offset) == [files.files[name]?.count])
  }

  @Test("a damaged copy of MANIFEST is a finding that the next opening for writing heals")
  func manifestCopy() throws {
    let (files, _) = try SampleStore.small()
    for copy in StoreLayout.manifests {
      for offset in Array(0..<220) + [300, 4095, 9000, 16_383] {
        let damaged = files.flipping(bit: offset % 8, of: offset, in: copy)
        let disk = try damaged.disk()
        let report = try StoreFiles.verify(disk)
        #expect(report.findings.map(\.file) == [copy], "byte \(offset)")
        #expect(report.findings.first?.isDamageToAcknowledged == false, "byte \(offset)")
        #expect(try StoreFiles(disk).files == damaged.files, "byte \(offset)")
        guard offset % 40 == 0 else { continue }
        try StoreFiles.open(disk, .write).close()
        #expect(try StoreFiles.verify(disk).isHealthy, "byte \(offset)")
      }
    }
  }

  @Test("an operation id that nobody gives out is named, in the open segment and in a sealed one")
  func impossibleOrigin() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    for (key, sequence) in [("last", Slot.maxSequence), ("beyond", Slot.maxSequence + 1)] {
      var attributes = EntryAttributes()
      attributes.origin = EntryAttributes.Origin(
        replica: Array(repeating: 7, count: 16), sequence: sequence)
      var batch = OperationBatch()
      try batch.add(
        .put, key: Array(key.utf8).rawSpan, value: [1].rawSpan, attributes: attributes)
      try engine.commit(batch)
    }
    for _ in 0..<2 {
      let report = try StoreFiles.verify(disk)
      #expect(report.findings.map(\.sequences) == [2...2])
      #expect(report.findings.allSatisfy { $0.message.contains("281474976710656") })
      #expect(!report.findings.contains { $0.isDamageToAcknowledged } && !report.isRecorded)
      try engine.writer.sealSegments()
    }
    try engine.close()
  }

  @Test("a footer that denies a record which its segment holds is found")
  func deniedRecord() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    var batch = OperationBatch()
    try batch.add(.put, key: [1].rawSpan, value: [1].rawSpan)
    try RecordTable.add(RecordType(rawValue: 40), key: [1], value: [2], to: &batch)
    try engine.commit(batch)
    try engine.close()
    #expect(try StoreFiles.verify(disk).findings.isEmpty)
    var store = try StoreFiles(disk)
    let name = try #require(store.segments.first)
    var bytes = try #require(store.files[name])
    let salt = try SegmentHeader(decodingPage: bytes.rawSpan).salt
    let place = bytes.count - FormatConstants.segmentFooterBytes
    var footer = try SegmentFooter(
      decoding: try bytes.rawSpan.slice(place, bytes.count - place), salt: salt)
    footer.isRecordless = true
    bytes.replaceSubrange(place..., with: footer.encoded(salt: salt))
    store.files[name] = bytes
    let report = try StoreFiles.verify(try store.disk())
    #expect(report.findings.map(\.message) == ["footer and frames differ"])
    #expect(report.findings.map(\.offset) == [place])
  }

  @Test("a footer says whether there are records with one of two numbers, and a third is refused")
  func numberOfRecords() throws {
    var footer = SegmentFooter(
      segmentID: 1, firstSequence: 1, lastSequence: 2, locatorOffset: 8192, chain: 3,
      latestTime: nil, rawBytes: 5, latestCommitTime: 6)
    for isRecordless in [false, true] {
      footer.isRecordless = isRecordless
      let bytes = footer.encoded(salt: 9)
      #expect(try SegmentFooter(decoding: bytes.rawSpan, salt: 9) == footer)
    }
    var bytes = footer.encoded(salt: 9)
    bytes[108] = 2
    let hash = XXH64.hash(bytes.rawSpan.extracting(0..<120), seed: 9)
    for i in 0..<8 { bytes[120 + i] = UInt8(truncatingIfNeeded: hash >> (8 * UInt64(i))) }
    #expect(throws: FormatError.self) { try SegmentFooter(decoding: bytes.rawSpan, salt: 9) }
  }

  @Test("an update of MANIFEST that was killed anywhere is no finding")
  func halfWrittenManifest() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try engine.put("a", "1")
    let before = try StoreFiles(disk)
    try engine.writer.sealSegments()
    try engine.put("b", "1")
    let after = try StoreFiles(disk)
    let old = try #require(before.files["MANIFEST.0"])
    let new = try #require(after.files["MANIFEST.0"])
    for pages in 0...(new.count / 4096) {
      var files = after
      files.files["MANIFEST.1"] = before.files["MANIFEST.1"]
      files.files["MANIFEST.0"] = Array(new.prefix(pages * 4096)) + old.dropFirst(pages * 4096)
      // The process died before what it wrote next.
      let manifest = try files.manifest()
      let isNew = manifest.generation == (try after.manifest()).generation
      if !isNew { files = before.withManifests(of: files) }
      #expect(try StoreFiles.verify(try files.disk()).findings == [], "\(pages) pages")
    }
    try engine.close()
  }

  @Test("both copies of MANIFEST gone or damaged are two findings for repair, and no opening")
  func manifestsGone() throws {
    let (files, _) = try SampleStore.small()
    let damaged = files.flipping(bit: 1, of: 100, in: "MANIFEST.0")
      .flipping(bit: 1, of: 200, in: "MANIFEST.1")
    for files in [files.removing("MANIFEST.0", "MANIFEST.1"), damaged] {
      let disk = try files.disk()
      let report = try StoreFiles.verify(disk)
      #expect(report.findings.map(\.file) == StoreLayout.manifests)
      #expect(report.findings.allSatisfy { $0.remedy.contains("repair") })
      #expect(!report.isRecorded)
      #expect(throws: TidemarkError.self) { try StoreFiles.open(disk, .write) }
    }
  }

  @Test("damage is recorded once, and not at all while somebody writes")
  func recording() throws {
    let (files, _) = try SampleStore.small()
    let name = files.segments[0]
    let disk = try files.flipping(bit: 2, of: 8500, in: name).disk()
    let lock = try disk.lock(StoreFiles.path + "/LOCK", owner: bytes("somebody"))
    let locked = try StoreFiles.verify(disk)
    #expect(!locked.isRecorded && locked.findings.count == 1)
    guard case .acquired(let held) = lock else { return }
    held.release()
    #expect(try StoreFiles.verify(disk).isRecorded)
    let manifest = try StoreFiles(disk).manifest()
    #expect(manifest.damage.count == 1)
    #expect(try StoreFiles.verify(disk).isRecorded)
    #expect(try StoreFiles(disk).manifest() == manifest)
    // Mended behind the store's back, it still does not open for writing, and verify says so.
    let healed = try StoreFiles(disk).flipping(bit: 2, of: 8500, in: name).disk()
    let report = try StoreFiles.verify(healed)
    #expect(report.findings.count == 1 && report.isRecorded)
    #expect(throws: TidemarkError.self) { try StoreFiles.open(healed, .write) }
  }

  @Test("a missing store, a file and a strange directory are errors, not findings")
  func noStore() throws {
    let disk = MemoryFileSystem()
    func code(_ path: String) -> TidemarkError.Code? {
      do {
        _ = try StoreFiles.verify(disk, path: path)
        return nil
      } catch { return (error as? TidemarkError)?.code }
    }
    #expect(code("nothing") == .storeMissing)
    try disk.createDirectory("folder")
    #expect(code("folder") == .notAStore)
    try disk.open("folder/file", .create).close()
    #expect(code("folder/file") == .notAStore)
    #expect(code("folder") == .notAStore)
  }

  @Test("a file beyond the end of the log that MANIFEST does not list is damage")
  func unlisted() throws {
    let disk = MemoryFileSystem()
    let engine = try StoreFiles.open(disk, .create)
    try engine.put("a", "1")
    let old = try StoreFiles(disk)
    try engine.writer.sealSegments()
    try engine.put("b", "1")
    try engine.close()
    let new = try StoreFiles(disk)
    var mixed = new.withManifests(of: old)
    let report = try StoreFiles.verify(try mixed.disk())
    #expect(report.findings.map(\.file) == [new.segments[1]])
    #expect(report.findings.first?.sequences == 2...2)
    // Files left of an interrupted compaction are none.
    mixed = new
    mixed.files["log/00000000000000000001-0000ffff.seg"] = new.files[new.segments[0]]
    let other = try StoreFiles.verify(try mixed.disk())
    #expect(other.findings == [] && other.leftovers.count == 1)
  }
}

extension StoreFiles {
  func withManifests(of other: StoreFiles) -> StoreFiles {
    var copy = self
    for name in StoreLayout.manifests { copy.files[name] = other.files[name] }
    return copy
  }
}
