import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Limits of MANIFEST")
struct ManifestLimitTests {
  @Test("a MANIFEST that nobody could read any more is refused, and the old one stays")
  func segments() throws {
    let store = TestStore()
    let engine = try store.open()
    try engine.put("key", "value")
    try engine.close()
    let manifests = ManifestStore(store.disk, storePath: store.path)
    let before = try #require(try manifests.load()).manifest
    var manifest = before
    let sample = try #require(manifest.segments.first)
    manifest.segments = (0...Limits.segments).map { number in
      var row = sample
      row.firstSequence = UInt64(number + 1)
      row.lastSequence = UInt64(number + 1)
      row.state = .sealed
      return row
    }
    #expect(throws: TidemarkError.self) { try manifests.update(&manifest) }
    #expect(try #require(try manifests.load()).manifest == before)
    manifest.segments.removeLast()
    try manifests.update(&manifest)
    #expect(try #require(try manifests.load()).manifest.segments.count == Limits.segments)
  }
}
