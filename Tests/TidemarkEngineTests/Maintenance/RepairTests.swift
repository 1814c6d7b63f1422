import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Repairing")
struct RepairTests {
  static let target = "target"

  static func repair(_ disk: any FileSystem) throws -> RepairReport {
    try StoreRepair.repair(
      from: StoreFiles.path, into: target, environment: StoreFiles.environment(disk))
  }

  /// Repairs, and checks that the new store holds everything but what is said to be lost.
  @discardableResult
  static func expectAllTheRest(
    _ disk: any FileSystem, _ expected: ExpectedStore, _ comment: Comment
  ) throws -> RepairReport {
    let report = try repair(disk)
    #expect(try StoreFiles.verify(disk, path: target).findings == [], comment)
    let engine = try StoreFiles.open(disk, .write, path: target)
    let found = try ExpectedStore(engine)
    for (sequence, entry) in expected.entries where !report.lost.contains(sequence) {
      #expect(found.entries[sequence] == entry, comment)
    }
    let known = Set(expected.entries.keys)
    #expect(found.entries.keys.allSatisfy { known.contains($0) }, comment)
    #expect(found.entries.keys.allSatisfy { !report.lost.contains($0) }, comment)
    #expect(report.entries == found.entries.count, comment)
    #expect(report.lastSequence == expected.entries.keys.max(), comment)
    if !report.lost.isEmpty { #expect(!report.losses.isEmpty, comment) }
    // It goes on behind the last sequence of the source.
    #expect(try engine.put("after", "repair") == report.lastSequence + 1, comment)
    try engine.close()
    #expect(try StoreFiles.verify(disk, path: target).findings == [], comment)
    return report
  }

  @Test("a healthy store comes out with every entry as it was")
  func healthy() throws {
    for (files, expected) in [try SampleStore.small(), try SampleStore.large()] {
      let disk = try files.disk()
      let report = try Self.expectAllTheRest(disk, expected, "healthy")
      #expect(report.isComplete && report.lost.isEmpty && report.notes == [])
      let source = try files.manifest()
      let target = try StoreFiles(disk, path: Self.target).manifest()
      #expect(target.storeID == source.storeID && target.replicaID == source.replicaID)
      #expect(Array(target.epochs.dropLast()) == source.epochs)
      #expect(target.hashSeed == source.hashSeed && target.damage == [])
    }
  }

  @Test("a bit flipped anywhere costs no more than what verifying names")
  func flipped() throws {
    let (files, expected) = try SampleStore.small()
    let name = files.segments[0]
    let count = try #require(files.files[name]).count
    for offset in stride(from: 3, to: count, by: 41) where offset < 300 || offset > 8100 {
      let comment: Comment = "byte \(offset) of \(count)"
      let disk = try files.flipping(bit: offset % 8, of: offset, in: name).disk()
      let found = try StoreFiles.verify(disk).findings.compactMap(\.sequences)
      let report = try Self.expectAllTheRest(disk, expected, comment)
      for range in report.lost.ranges {
        #expect(
          found.contains { $0.contains(range.lowerBound) && $0.contains(range.upperBound) },
          comment)
      }
      #expect(report.lost.count <= 4, comment)
    }
  }

  @Test("a bit flipped in compacted and large segments costs its block or its frame")
  func flippedLarge() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      let count = try #require(files.files[name]).count
      for offset in stride(from: 8200, to: count, by: 7001) {
        let comment: Comment = "byte \(offset) of \(name)"
        let disk = try files.flipping(bit: offset % 8, of: offset, in: name).disk()
        let report = try Self.expectAllTheRest(disk, expected, comment)
        #expect(report.lost.count < 800, comment)
        #expect(report.losses.allSatisfy { $0.file == name }, comment)
      }
    }
  }

  @Test("a log cut at any length keeps what stands before the cut")
  func cut() throws {
    let (files, expected) = try SampleStore.small()
    let name = files.segments[0]
    let count = try #require(files.files[name]).count
    var kept = 0
    for length in stride(from: 0, to: count, by: 97) {
      let disk = try files.cutting(name, to: length).disk()
      let report = try Self.expectAllTheRest(disk, expected, "cut to \(length) of \(count)")
      #expect(report.entries >= kept)
      kept = report.entries
    }
    #expect(kept == expected.entries.count)
  }

  @Test("with both copies of MANIFEST lost everything is found by its files")
  func manifestsLost() throws {
    for (files, expected) in [try SampleStore.small(), try SampleStore.large()] {
      let disk = try files.removing("MANIFEST.0", "MANIFEST.1").disk()
      let report = try Self.expectAllTheRest(disk, expected, "no MANIFEST")
      #expect(report.isComplete && report.lost.isEmpty && !report.notes.isEmpty)
      let target = try StoreFiles(disk, path: Self.target).manifest()
      #expect(target.storeID == (try files.manifest()).storeID)
      #expect(target.historyFrom == 1 && target.droppedThrough == 0)
    }
  }

  @Test("with the header of a segment lost, MANIFEST or the first frame tells what it is")
  func headersLost() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      var damaged = files
      for i in 0..<8192 { damaged.files[name]?[i] = UInt8(i % 251) }
      let comment: Comment = "\(name)"
      let report = try Self.expectAllTheRest(try damaged.disk(), expected, comment)
      #expect(report.isComplete, comment)
      damaged = damaged.removing("MANIFEST.0", "MANIFEST.1")
      let bare = try Self.expectAllTheRest(try damaged.disk(), expected, comment)
      #expect(bare.isComplete, comment)
    }
  }

  @Test("a missing file costs its sequences, and no others")
  func fileMissing() throws {
    let (files, expected) = try SampleStore.large()
    for name in files.segments {
      let row = try #require(try files.manifest().segments.first { name.hasSuffix($0.fileName) })
      let disk = try files.removing(name).disk()
      let report = try Self.expectAllTheRest(disk, expected, "\(name)")
      #expect(report.lost.ranges == [row.firstSequence...row.lastSequence])
    }
  }
}
