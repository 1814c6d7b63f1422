import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Power cuts and kills")
struct PowerTests {
  let disk = SimulatedFileSystem(seed: 1)

  /// The disks that every survival, and many random ones, leave of the disk as it is now.
  private func outcomes(randoms: Int = 200) -> [SimulatedFileSystem] {
    let crash = disk.snapshot()
    return Survival.sweep(seed: 99, randoms: randoms).map {
      SimulatedFileSystem(crash, keeping: $0, seed: 5)
    }
  }

  @Test("synced bytes, lengths and names survive whatever happens to later ones")
  func syncedStays() throws {
    let file = try disk.createDurable("a", numbered(1..<21))
    let second = try disk.createDurable("b", [1, 2, 3])
    try file.put(numbered(101..<105), at: 2048)
    try file.put(numbered(200..<203), at: 20 * 512)
    try second.truncate(to: 0)
    try disk.remove("b")
    for outcome in outcomes() {
      let bytes = try #require(outcome.contents(of: "a"))
      #expect(Array(bytes[..<2048]) == numbered(1..<5))
      #expect(Array(bytes[4096..<(20 * 512)]) == numbered(9..<21))
    }
  }

  @Test("each un-synced sector is kept, lost or torn on its own")
  func sectors() throws {
    let file = try disk.createDurable("a", numbered(1..<9))
    try file.put(numbered(101..<109))
    var seen: [Set<String>] = Array(repeating: [], count: 8)
    let crash = disk.snapshot()
    for seed in 0..<200 as Range<UInt64> {
      let outcome = SimulatedFileSystem(crash, keeping: .random(seed: seed))
      let bytes = try #require(outcome.contents(of: "a"))
      #expect(bytes.count == 8 * 512)
      for sector in 0..<8 {
        let values = Set(bytes[(sector * 512)..<(sector * 512 + 512)])
        #expect(values.isSubset(of: [UInt8(sector + 1), UInt8(sector + 101)]))
        seen[sector].insert(
          values.count == 2 ? "torn" : values.contains(UInt8(sector + 1)) ? "lost" : "kept")
      }
    }
    #expect(seen.allSatisfy { $0 == ["torn", "lost", "kept"] })
  }

  @Test("an earlier one of several writes to one sector may be what reached the disk")
  func earlierVersion() throws {
    let file = try disk.createDurable("a", numbered(1..<2))
    for version in 2...4 { try file.put(numbered(version..<(version + 1))) }
    let found = Set(outcomes().compactMap { $0.contents(of: "a") }.filter { Set($0).count == 1 })
    #expect(found == Set((1...4).map { numbered($0..<($0 + 1)) }))
  }

  @Test("a new name may be lost though the file was synced, and is not once the directory was")
  func names() throws {
    let file = try disk.open("a", .create)
    try file.put([1])
    try file.sync()
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [nil, [1]])
    #expect(disk.durableContents(of: "a") == nil)
    try disk.syncDirectory("")
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [[1]])
    #expect(disk.durableContents(of: "a") == [1])
  }

  @Test("a name survives without the bytes that were not synced")
  func nameWithoutBytes() throws {
    let file = try disk.open("a", .create)
    try disk.syncDirectory("/")
    try file.put([1])
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [[], [0], [1]])
  }

  @Test("a removed file may come back, whole, until its directory is synced")
  func removal() throws {
    try disk.createDurable("a", numbered(1..<5))
    try disk.remove("a")
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [nil, numbered(1..<5)])
    try disk.syncDirectory("")
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [nil])
  }

  @Test("a name that is removed and given again may have either file, or none")
  func recreated() throws {
    try disk.createDurable("a", [1])
    try disk.remove("a")
    let file = try disk.open("a", .create)
    try file.put([2])
    try file.sync()
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [[1], nil, [2]])
  }

  @Test("an entry that only a crash can bring back is not forgotten meanwhile")
  func forgotten() throws {
    let held = try disk.createDurable("held", [3])
    try disk.remove("held")
    try disk.syncDirectory("")
    try disk.createDurable("a", [1]).close()
    try disk.remove("a")
    let file = try disk.open("b", .create)
    try file.put([2])
    try file.sync()
    try disk.remove("b")
    // Closing is when the disk looks for what nobody can reach any more.
    file.close()
    #expect(try held.get(1) == [3])
    #expect(Set(outcomes().map { $0.contents(of: "a") }) == [nil, [1]])
    #expect(Set(outcomes().map { $0.contents(of: "b") }) == [nil, [2]])
  }

  @Test("a directory that is lost takes along what stands in it")
  func directories() throws {
    try disk.createDirectory("d")
    try disk.createDurable("d/a", [1])
    #expect(Set(outcomes().map { $0.contents(of: "d/a") }) == [nil, [1]])
    try disk.syncDirectory("")
    #expect(Set(outcomes().map { $0.contents(of: "d/a") }) == [[1]])
  }

  @Test("un-synced changes of length survive in their order, up to some point")
  func lengths() throws {
    let file = try disk.createDurable("a", numbered(1..<4))
    try file.truncate(to: 700)
    try file.allocate(to: 5000)
    try file.truncate(to: 4000)
    let lengths = Set(outcomes().compactMap { $0.contents(of: "a")?.count })
    #expect(lengths == [3 * 512, 700, 5000, 4000])
    for outcome in outcomes() {
      let bytes = try #require(outcome.contents(of: "a"))
      if bytes.count != 3 * 512 {
        #expect(!bytes[700...].contains { $0 != 0 })
      }
    }
  }

  @Test("bytes that a surviving truncation cut off do not come back")
  func truncatedStaysGone() throws {
    let file = try disk.open("a", .create)
    try disk.syncDirectory("")
    try file.put([UInt8](repeating: 1, count: 1000))
    try file.truncate(to: 100)
    try file.truncate(to: 2000)
    for outcome in outcomes() {
      let bytes = try #require(outcome.contents(of: "a"))
      if bytes.count == 2000 { #expect(!bytes[100...].contains(1)) }
    }
  }

  @Test("a kept length may show old bytes of other files where its own were lost")
  func staleBlocks() throws {
    try disk.createDurable("old", [UInt8](repeating: 0xaa, count: 8192))
    let file = try disk.createDurable("new", [])
    try file.put([UInt8](repeating: 1, count: 40_960))
    let crash = disk.snapshot()
    var found = false
    for seed in 0..<50 {
      let after = SimulatedFileSystem(crash, keeping: .randomStale(seed: UInt64(seed)))
      let bytes = try #require(after.contents(of: "new"))
      #expect(Set(bytes).isSubset(of: [0, 1, 0xaa]))
      if bytes.contains(0xaa) {
        found = true
        #expect(after.injected[.sectorStale] > 0)
      }
    }
    #expect(found)
  }

  @Test("each policy leaves what its name says")
  func policies() throws {
    let file = try disk.createDurable("a", numbered(1..<3))
    try file.put(numbered(11..<12), at: 0)
    try file.put(numbered(12..<14), at: 512)
    try disk.open("b", .create).close()
    try disk.open("c", .create).close()
    let crash = disk.snapshot()
    func after(_ survival: Survival) -> SimulatedFileSystem {
      SimulatedFileSystem(crash, keeping: survival)
    }
    let all = after(.keepAll)
    #expect(all.contents(of: "a") == numbered(11..<14))
    #expect(all.files() == ["a", "b", "c"])
    let none = after(.loseAll)
    #expect(none.contents(of: "a") == numbered(1..<3))
    #expect(none.files() == ["a"])
    let names = after(.keepNames)
    #expect(names.contents(of: "a") == numbered(1..<3) + numbered(0..<1))
    #expect(names.files() == ["a", "b", "c"])
    let bytes = after(.keepBytes)
    #expect(bytes.contents(of: "a") == numbered(11..<13))
    #expect(bytes.files() == ["a"])
    let oldest = after(.keepOldest)
    #expect(oldest.contents(of: "a") == numbered(11..<14))
    #expect(oldest.files() == ["a"])
    let newest = after(.keepNewest)
    #expect(newest.contents(of: "a") == numbered(1..<3))
    #expect(newest.files() == ["a", "b", "c"])
    let cuts = (0..<20).compactMap { after(.cutWrites(seed: $0)).contents(of: "a") }
    #expect(
      Set(cuts) == [
        numbered(1..<3) + numbered(0..<1), numbered(11..<12) + numbered(2..<3) + numbered(0..<1),
        numbered(11..<13) + numbered(0..<1), numbered(11..<14),
      ])
    let torn = after(.tearAll(seed: 4))
    #expect(torn.injected[.sectorTorn] == 3)
    #expect(torn.contents(of: "a")?.count == 3 * 512)
  }

  @Test("the same survival gives the same disk")
  func repeats() throws {
    let file = try disk.createDurable("a", numbered(1..<9))
    try file.put(numbered(101..<120), at: 1000)
    let crash = disk.snapshot()
    for survival in Survival.sweep(seed: 3, randoms: 20) {
      let first = SimulatedFileSystem(crash, keeping: survival, seed: 1)
      let second = SimulatedFileSystem(crash, keeping: survival, seed: 2)
      #expect(first.contents(of: "a") == second.contents(of: "a"), "\(survival)")
    }
  }

  @Test("without power nothing answers, afterwards only files that are opened anew")
  func dead() throws {
    let file = try disk.createDurable("a", [1])
    guard case .acquired = try disk.lock("LOCK", owner: [1]) else { return }
    disk.powerCut()
    #expect(!disk.isRunning)
    let calls = disk.calls
    #expect(number { _ = try file.get(1) } == .EIO)
    #expect(number { try file.put([1]) } == .EIO)
    #expect(number { _ = try disk.open("a", .read) } == .EIO)
    #expect(number { _ = try disk.kind("a") } == .EIO)
    #expect(number { _ = try disk.bootIdentifier() } == .EIO)
    #expect(disk.calls == calls)
    disk.restart()
    #expect(disk.isRunning)
    #expect(number { _ = try file.get(1) } == .EBADF)
    #expect(try disk.open("a", .read).get(1) == [1])
    guard case .acquired = try disk.lock("LOCK", owner: [2]) else {
      Issue.record("a lock outlived the machine")
      return
    }
  }

  @Test("the boot identifier changes with a power cut and not with a kill")
  func boots() throws {
    let first = try disk.bootIdentifier()
    #expect(first.count == 16)
    disk.kill()
    #expect(number { _ = try disk.bootIdentifier() } == .EIO)
    disk.restart()
    #expect(try disk.bootIdentifier() == first)
    disk.powerCut()
    disk.restart()
    #expect(try disk.bootIdentifier() != first)
  }

  @Test("a kill takes files and locks, and leaves every byte, synced or not")
  func kill() throws {
    let file = try disk.open("a", .create)
    try file.put([1, 2, 3])
    guard case .acquired = try disk.lock("LOCK", owner: [1]) else { return }
    let other = disk.anotherProcess()
    let kept = try other.open("a", .read)
    disk.kill()
    #expect(try kept.get(3) == [1, 2, 3])
    #expect(number { _ = try disk.open("a", .read) } == .EIO)
    disk.restart()
    #expect(number { try file.put([1]) } == .EBADF)
    #expect(try disk.open("a", .read).get(3) == [1, 2, 3])
    guard case .acquired = try disk.lock("LOCK", owner: [2]) else {
      Issue.record("a lock outlived its process")
      return
    }
    disk.powerCut()
    disk.restart(keeping: .loseAll)
    #expect(disk.files() == [])
  }

  @Test("a planned cut comes in the call asked for, which is kept or lost as well")
  func plannedCut() throws {
    let file = try disk.createDurable("a", numbered(1..<2))
    disk.plan = .powerCut(atCall: 2)
    try file.put(numbered(2..<3))
    _ = try file.get(512)
    #expect(number { try file.put(numbered(3..<4)) } == .EIO)
    #expect(!disk.isRunning)
    #expect(disk.injected[.powerCut] == 1)
    let found = Set(outcomes().compactMap { $0.contents(of: "a") }.filter { Set($0).count == 1 })
    #expect(found == Set((1...3).map { numbered($0..<($0 + 1)) }))
  }

  @Test("a cut in the middle of a sync leaves some of what was to be synced")
  func cutInSync() throws {
    let file = try disk.createDurable("a", numbered(1..<5))
    try file.put(numbered(11..<15))
    disk.plan = .powerCut(atCall: 1)
    #expect(number { try file.sync() } == .EIO)
    let found = Set(outcomes().compactMap { $0.contents(of: "a") })
    #expect(found.contains(numbered(1..<5)))
    #expect(found.contains(numbered(11..<15)))
    #expect(found.count > 10)
  }

  @Test("a cut in the middle of a directory's sync leaves some of the names")
  func cutInDirectorySync() throws {
    try disk.open("a", .create).close()
    try disk.open("b", .create).close()
    disk.plan = .powerCut(atCall: 1)
    #expect(number { try disk.syncDirectory("") } == .EIO)
    #expect(Set(outcomes().map { $0.files() }) == [[], ["a"], ["b"], ["a", "b"]])
  }

  @Test("a late write may be there without the earlier one, in one sector too")
  func newestOnly() throws {
    let file = try disk.createDurable("a", [0, 0])
    try file.put([1], at: 0)
    try file.put([1], at: 1)
    let crash = disk.snapshot()
    #expect(SimulatedFileSystem(crash, keeping: .keepNewest).contents(of: "a") == [0, 1])
    #expect(SimulatedFileSystem(crash, keeping: .keepOldest).contents(of: "a") == [1, 0])
  }

  @Test("a planned kill may leave a part of the call")
  func plannedKill() throws {
    try disk.createDurable("a", [])
    let before = disk.snapshot()
    var lengths: Set<Int> = []
    var removed: Set<Bool> = []
    for seed in 0..<60 {
      for removes in [false, true] {
        let run = SimulatedFileSystem(killedAt: before, seed: UInt64(seed))
        run.plan = .processKill(atCall: 1)
        let file = try run.open("a", .readWrite)
        if removes {
          #expect(number { try run.remove("a") } == .EIO)
        } else {
          #expect(number { try file.put([1, 2, 3, 4]) } == .EIO)
        }
        #expect(!run.isRunning)
        run.restart()
        if removes { removed.insert(run.files().isEmpty) }
        if !removes { lengths.insert(run.contents(of: "a")?.count ?? -1) }
      }
    }
    #expect(lengths == [0, 1, 2, 3, 4])
    #expect(removed == [true, false])
  }

  @Test("a snapshot is not touched by what happens later, and can be put back")
  func snapshots() throws {
    let file = try disk.createDurable("a", numbered(1..<100))
    try file.put(numbered(101..<102))
    let before = disk.snapshot()
    #expect(before.unsyncedChanges == 1)
    try file.put(numbered(7..<50))
    try disk.remove("a")
    try disk.syncDirectory("")
    disk.restore(before)
    #expect(number { _ = try file.get(1) } == .EBADF)
    #expect(disk.contents(of: "a") == numbered(101..<102) + numbered(2..<100))
    #expect(disk.unsyncedChanges == 1)
  }

  @Test("a second crash takes only what the first left un-synced")
  func twoCrashes() throws {
    try disk.createDurable("a", numbered(1..<3))
    disk.powerCut()
    disk.restart(keeping: .loseAll)
    let file = try disk.open("a", .readWrite)
    try file.put(numbered(5..<6))
    disk.powerCut()
    disk.restart(keeping: .keepAll)
    #expect(disk.contents(of: "a") == numbered(5..<6) + numbered(2..<3))
    disk.powerCut()
    disk.restart(keeping: .loseAll)
    #expect(disk.contents(of: "a") == numbered(5..<6) + numbered(2..<3))
  }
}
