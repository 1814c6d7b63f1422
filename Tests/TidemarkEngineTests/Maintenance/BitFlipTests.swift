import Testing
import TidemarkTestKit

@testable import TidemarkEngine

/// Damage in cleanly closed stores: it is found and placed, and no read is wrong.
@Suite("Damage at rest")
struct BitFlipTests {
  /// Every byte of the small store's log but for most of the zeros in its header pages, with a
  /// bit that changes from byte to byte.
  private static func places(_ files: StoreFiles, every stride: Int) -> [(String, Int, Int)] {
    var places: [(String, Int, Int)] = []
    for name in files.segments {
      for offset in 0..<(files.files[name]?.count ?? 0) {
        let isHeaderFill = offset < 8192 && offset % 4096 > 120 && offset % 4096 < 4088
        if isHeaderFill, offset % 97 != 5 { continue }
        if !isHeaderFill, offset % stride != 0 { continue }
        places.append((name, offset, (offset * 5 + offset / 8) % 8))
      }
    }
    return places
  }

  /// The finding must name the file, a place at or before the flip, and sequences in range.
  private func expectFound(
    _ report: VerifyReport, _ name: String, _ offset: Int, last: UInt64, _ comment: Comment
  ) {
    let found = report.findings.filter { $0.isDamageToAcknowledged }
    #expect(!found.isEmpty, comment)
    for finding in found {
      #expect(finding.file == name, comment)
      #expect(
        finding.offset <= offset && offset < finding.offset + max(finding.length, 1), comment)
      #expect(finding.sequences.map { $0.upperBound <= last } ?? false, comment)
    }
  }

  /// The answers of an opening for reading are right.
  private func expectRightOrFailing(
    _ disk: any FileSystem, _ expected: ExpectedStore, _ comment: Comment
  ) throws {
    let engine: Engine
    do { engine = try StoreFiles.open(disk, .readOnly) } catch { return }
    defer { try? engine.close() }
    for key in expected.newest.keys {
      do {
        let value = try engine.reader.withValue(forKey: key.rawSpan) {
          (value, _) throws(TidemarkError) in [UInt8](copying: value)
        }
        #expect(value == expected.value(key), comment)
      } catch {
        #expect([.damaged, .possiblyStale].contains(error.code), comment)
      }
    }
  }

  @Test("a bit flipped anywhere in the log is found where it is, and reads are right or fail")
  func everywhere() throws {
    let (files, expected) = try SampleStore.small()
    let last = try #require(expected.entries.keys.max())
    for (name, offset, bit) in Self.places(files, every: 1) {
      let comment: Comment = "bit \(bit) of byte \(offset) of \(name)"
      let disk = try files.flipping(bit: bit, of: offset, in: name).disk()
      guard offset % 11 == 0 else {
        // With the lock held nothing is recorded, which takes most of the time.
        let lock = try disk.lock(StoreFiles.path + "/LOCK", owner: bytes("test"))
        let report = try StoreFiles.verify(disk)
        expectFound(report, name, offset, last: last, comment)
        #expect(!report.isRecorded, comment)
        withExtendedLifetime(lock) {}
        continue
      }
      let report = try StoreFiles.verify(disk)
      expectFound(report, name, offset, last: last, comment)
      #expect(report.isRecorded, comment)
      try expectRightOrFailing(disk, expected, comment)
      #expect(throws: TidemarkError.self, comment) { try StoreFiles.open(disk, .write) }
    }
  }

  @Test("a bit flipped in compacted and large segments is found where it is")
  func large() throws {
    let (files, expected) = try SampleStore.large()
    let last = try #require(expected.entries.keys.max())
    for (name, offset, bit) in Self.places(files, every: 1009) {
      let comment: Comment = "bit \(bit) of byte \(offset) of \(name)"
      let disk = try files.flipping(bit: bit, of: offset, in: name).disk()
      expectFound(try StoreFiles.verify(disk), name, offset, last: last, comment)
      if offset % 3 == 0 { try expectRightOrFailing(disk, expected, comment) }
    }
  }
}
