import Testing
import Tidemark
import TidemarkSyncServer

@testable import SyncServerKit

@Suite("When a compaction is worth it")
struct CompactionSettingsTests {
  private let settings = CompactionSettings()
  private let least = CompactionSettings().leastBytes

  private func isWorth(
    log: Int, reclaimable: Int, appended: Int = 0, leftover: Int = 0
  ) -> Bool {
    settings.isWorth(
      LogSpace(log: log, appended: appended, reclaimable: reclaimable), leftover: leftover)
  }

  @Test("when enough bytes, and enough of them all, would go")
  func share() {
    #expect(isWorth(log: 2 * least, reclaimable: least))
    #expect(!isWorth(log: 2 * least, reclaimable: least - 1))
    #expect(!isWorth(log: 10 * least, reclaimable: 2 * least))
    #expect(isWorth(log: 10 * least, reclaimable: 4 * least))
  }

  @Test("not for what the last one could not free")
  func leftover() {
    #expect(!isWorth(log: 3 * least, reclaimable: 2 * least, leftover: 2 * least))
    #expect(isWorth(log: 4 * least, reclaimable: 3 * least, leftover: least))
  }

  @Test("when the log has doubled, whatever is in it")
  func doubled() {
    #expect(isWorth(log: 4 * least, reclaimable: 0, appended: 2 * least))
    #expect(!isWorth(log: 4 * least, reclaimable: 0, appended: least))
    #expect(!isWorth(log: least - 1, reclaimable: 0, appended: least - 1))
  }
}
