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
      #expect(try StoreFiles(disk).files == files.files)
    }
  }
}
