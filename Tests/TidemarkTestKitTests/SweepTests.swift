import Testing
import TidemarkEngine
import TidemarkTestKit

/// A log that a user might write: one file for each record, found again by name.
///
/// It exists to show that a crash sweep finds what such programs really got wrong.
private struct ToyLog {
  enum Mistake: CaseIterable {
    case none, noFileSync, noDirectorySync, noDirectoryCreationSync, acknowledgesTooSoon
    case believesAnySecondSync
  }

  let disk: SimulatedFileSystem
  let mistake: Mistake
  private(set) var acknowledged = 0

  init(_ disk: SimulatedFileSystem, _ mistake: Mistake) throws {
    self.disk = disk
    self.mistake = mistake
    try disk.createDirectory("log")
    if mistake != .noDirectoryCreationSync { try disk.syncDirectory("") }
  }

  mutating func append(_ record: Int) throws {
    if mistake == .acknowledgesTooSoon { acknowledged = record }
    let file = try disk.open("log/\(record)", .create)
    defer { file.close() }
    try file.put([UInt8](repeating: UInt8(record), count: 1500))
    if mistake == .believesAnySecondSync {
      do { try file.sync() } catch { try file.sync() }
    } else if mistake != .noFileSync {
      try file.sync()
    }
    if mistake != .noDirectorySync { try disk.syncDirectory("log") }
    acknowledged = record
  }

  /// Whether everything that was acknowledged is there.
  static func isWhole(_ disk: SimulatedFileSystem, upTo record: Int) -> Bool {
    (1...max(1, record)).prefix(record).allSatisfy {
      disk.contents(of: "log/\($0)") == [UInt8](repeating: UInt8($0), count: 1500)
    }
  }
}

@Suite("Sweeps over crash points")
struct SweepTests {
  /// Crashes of all kinds at every call until the script runs through; the violations found.
  private func sweep(_ mistake: ToyLog.Mistake, faults: [FaultRule] = []) -> (bad: Int, all: Int) {
    var bad = 0
    var all = 0
    for call in 1... {
      let disk = SimulatedFileSystem(seed: UInt64(call))
      disk.plan = FaultPlan(FaultPlan.powerCut(atCall: call).rules + faults)
      var acknowledged = 0
      do {
        var log = try ToyLog(disk, mistake)
        for record in 1...5 {
          defer { acknowledged = log.acknowledged }
          try log.append(record)
        }
      } catch {}
      let crash = disk.snapshot()
      for survival in Survival.sweep(seed: UInt64(call), randoms: 5) {
        let after = SimulatedFileSystem(crash, keeping: survival)
        all += 1
        if !ToyLog.isWhole(after, upTo: acknowledged) { bad += 1 }
      }
      if disk.isRunning { return (bad, all) }
    }
    return (bad, all)
  }

  @Test("a program that syncs what it should loses nothing")
  func right() {
    let result = sweep(.none)
    #expect(result.bad == 0)
    #expect(result.all > 200)
  }

  @Test(
    "a program that forgets one sync is caught",
    arguments: [
      ToyLog.Mistake.noFileSync, .noDirectorySync, .noDirectoryCreationSync, .acknowledgesTooSoon,
    ])
  private func wrong(_ mistake: ToyLog.Mistake) {
    #expect(sweep(mistake).bad > 0)
  }

  @Test("a program that believes a repeated sync is caught by a failing one")
  func repeatedSync() {
    let failure = FaultRule(.syncLeavesPagesClean, .call(3))
    #expect(sweep(.none, faults: [failure]).bad == 0)
    #expect(sweep(.believesAnySecondSync, faults: [failure]).bad > 0)
  }
}
