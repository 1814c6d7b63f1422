import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("Faults")
struct FaultTests {
  let disk = SimulatedFileSystem(seed: 1)
  let file: any File

  init() throws {
    file = try disk.createDurable("a", numbered(1..<21))
  }

  private func afterPowerCut(_ survival: Survival = .keepAll) -> [UInt8]? {
    SimulatedFileSystem(disk.snapshot(), keeping: survival).contents(of: "a")
  }

  @Test(
    "an error comes at the call asked for, once, and leaves no trace",
    arguments: [SimulatedErrno.EIO, .ENOSPC, .EDQUOT, .EMFILE, .EINTR, .EACCES])
  func once(_ error: SimulatedErrno) throws {
    disk.plan = .error(error, atCall: 3)
    try file.put([1])
    _ = try file.get(1)
    #expect(number { try file.put([2], at: 9) } == error)
    #expect(try file.get(1, at: 9) == [1])
    try file.put([2], at: 9)
    #expect(disk.injected[.error] == 1)
    #expect(disk.injected.errors == [error: 1])
  }

  @Test("a sticky error stays until its cause is gone")
  func sticky() throws {
    disk.plan = .error(.ENOSPC, atCall: 2, of: [.write], sticky: true)
    try file.put([1])
    for _ in 0..<5 { #expect(number { try file.put([2]) } == .ENOSPC) }
    try file.sync()
    disk.plan = .none
    try file.put([3])
    #expect(disk.injected[.error] == 5)
  }

  @Test("every operation can be made to fail, and says which it was")
  func operations() throws {
    let actions: [(FileSystemError.Operation, () throws -> Void)] = [
      (.open, { _ = try disk.open("a", .read) }),
      (.createDirectory, { try disk.createDirectory("d") }),
      (.syncDirectory, { try disk.syncDirectory("") }),
      (.list, { _ = try disk.list("") }),
      (.inspect, { _ = try disk.kind("a") }),
      (.lock, { _ = try disk.lock("LOCK", owner: []) }),
      (.bootIdentifier, { _ = try disk.bootIdentifier() }),
      (.length, { _ = try file.length() }),
      (.read, { _ = try file.get(1) }),
      (.write, { try file.put([1]) }),
      (.truncate, { try file.truncate(to: 1) }),
      (.allocate, { try file.allocate(to: 1) }),
      (.sync, { try file.sync() }),
      (.remove, { try disk.remove("a") }),
    ]
    for (operation, action) in actions {
      disk.plan = .error(.EIO, atCall: 1, of: [operation])
      let error = #expect(throws: FileSystemError.self) { try action() }
      #expect(error?.operation == operation)
      #expect(error?.number == SimulatedErrno.EIO.rawValue)
      try action()
    }
    #expect(disk.injected[.error] == actions.count)
  }

  @Test("a rule can be bound to some paths")
  func paths() throws {
    disk.plan = [FaultRule(.error(.EIO), .call(1), path: "seg", times: .max)]
    try file.put([1])
    #expect(number { _ = try disk.open("1.seg", .create) } == .EIO)
    try disk.open("b", .create).close()
  }

  @Test("a call may take effect and fail all the same")
  func afterEffect() throws {
    disk.plan = [FaultRule(.errorAfterEffect(.EIO), .call(1))]
    #expect(number { try file.put([99]) } == .EIO)
    #expect(try file.get(1) == [99])
    #expect(disk.injected[.errorAfterEffect] == 1)
  }

  @Test("transfers may be short, but never empty")
  func shortTransfers() throws {
    disk.plan = [FaultRule(.shortTransfer, .chance(1))]
    var written: Set<Int> = []
    var read: Set<Int> = []
    for _ in 0..<100 {
      written.insert(try file.put([1, 2, 3, 4]))
      read.insert(try file.get(4).count)
    }
    #expect(written == [1, 2, 3])
    #expect(read == [1, 2, 3])
    #expect(try file.put([1]) == 1)
    #expect(disk.injected[.shortTransfer] == 200)
  }

  @Test("a failed sync that leaves pages clean loses them in a power cut, however often repeated")
  func cleanPages() throws {
    disk.plan = [FaultRule(.syncLeavesPagesClean, .call(1))]
    try file.put(numbered(101..<103))
    #expect(number { try file.sync() } == .EIO)
    #expect(try file.get(1024) == numbered(101..<103))
    try file.put(numbered(110..<111), at: 5 * 512)
    try file.sync()
    try file.sync()
    #expect(disk.injected[.syncLeavesPagesClean] == 1)
    for survival in Survival.sweep(seed: 1) {
      #expect(
        afterPowerCut(survival) == numbered(1..<6) + numbered(110..<111) + numbered(7..<21))
    }
    try file.put(numbered(101..<103))
    try file.sync()
    #expect(afterPowerCut(.loseAll)?.prefix(1024) == numbered(101..<103)[...])
  }

  @Test("a failed sync that reverts shows the durable bytes and length again")
  func revertedPages() throws {
    disk.plan = [FaultRule(.syncRevertsPages, .call(1))]
    try file.put(numbered(101..<130))
    #expect(number { try file.sync() } == .EIO)
    #expect(disk.contents(of: "a") == numbered(1..<21))
    try file.sync()
    #expect(afterPowerCut(.loseAll) == numbered(1..<21))
    #expect(disk.injected[.syncRevertsPages] == 1)
  }

  @Test("a sync that fails late claims success, and the next one confesses")
  func lateFailure() throws {
    disk.plan = [FaultRule(.syncFailsLate, .call(1))]
    try file.put(numbered(101..<102))
    try file.sync()
    #expect(afterPowerCut(.loseAll) == numbered(1..<21))
    #expect(number { try file.sync() } == .EIO)
    try file.sync()
    #expect(afterPowerCut(.keepAll) == numbered(1..<21))
    #expect(disk.injected[.syncFailsLate] == 1)
  }

  @Test("a page that the kernel failed to write in the background is reported by the next sync")
  func writeback() throws {
    disk.plan = [FaultRule(.writebackFailure, .call(1))]
    try file.put(numbered(101..<102))
    #expect(try file.get(512) == numbered(101..<102))
    #expect(number { try file.sync() } == .EIO)
    try file.sync()
    #expect(afterPowerCut(.keepAll) == numbered(1..<21))
    #expect(disk.injected[.writebackFailure] == 1)
  }

  @Test("a bit flip on a read is gone in the next one")
  func bitFlipOnRead() throws {
    disk.plan = [FaultRule(.bitFlipOnRead, .call(2))]
    #expect(try file.get(2048) == numbered(1..<5))
    let wrong = try file.get(2048)
    let flipped = zip(wrong, numbered(1..<5)).map { ($0 ^ $1).nonzeroBitCount }.reduce(0, +)
    #expect(flipped == 1)
    #expect(try file.get(2048) == numbered(1..<5))
    #expect(disk.injected[.bitFlipOnRead] == 1)
  }

  @Test("a bit flip on a write stays")
  func bitFlipOnWrite() throws {
    disk.plan = [FaultRule(.bitFlipOnWrite, .call(1))]
    try file.put(numbered(101..<105))
    let wrong = try file.get(2048)
    #expect(zip(wrong, numbered(101..<105)).map { ($0 ^ $1).nonzeroBitCount }.reduce(0, +) == 1)
    try file.sync()
    #expect(afterPowerCut(.loseAll)?.prefix(2048) == wrong[...])
    #expect(disk.injected[.bitFlipOnWrite] == 1)
  }

  @Test("a misdirected read gives bytes from elsewhere")
  func misdirectedRead() throws {
    disk.plan = [FaultRule(.misdirectedRead, .call(1))]
    let wrong = try file.get(512)
    #expect(wrong.count == 512)
    #expect(wrong[0] != 1)
    #expect(Set(wrong).count == 1)
    #expect(try file.get(512) == numbered(1..<2))
    #expect(disk.injected[.misdirectedRead] == 1)
  }

  @Test("a misdirected write leaves the old bytes and spoils others")
  func misdirectedWrite() throws {
    disk.plan = [FaultRule(.misdirectedWrite, .call(1))]
    #expect(try file.put(numbered(101..<102)) == 512)
    let bytes = try file.get(20 * 512)
    #expect(bytes.prefix(512) == numbered(1..<2)[...])
    #expect(bytes.count { $0 == 101 } == 512)
    #expect(disk.injected[.misdirectedWrite] == 1)
  }

  @Test("a stale read gives what stood there before the last sync")
  func staleRead() throws {
    try file.put(numbered(101..<102))
    try file.sync()
    disk.plan = [FaultRule(.staleRead, .call(1))]
    #expect(try file.get(512) == numbered(1..<2))
    #expect(try file.get(512) == numbered(101..<102))
    #expect(disk.injected[.staleRead] == 1)
  }

  @Test("a lost write claims success and leaves the old block for good")
  func lostWrite() throws {
    disk.plan = [FaultRule(.lostWrite, .call(1))]
    #expect(try file.put(numbered(101..<103), at: 19 * 512) == 1024)
    #expect(try file.length() == 21 * 512)
    #expect(try file.get(1024, at: 19 * 512) == numbered(20..<21) + numbered(0..<1))
    try file.sync()
    #expect(disk.injected[.lostWrite] == 1)
  }

  @Test("latency adds up and moves the clock")
  func latency() throws {
    let clock = ManualClock()
    let slow = SimulatedFileSystem(seed: 1, clock: clock)
    slow.plan = [FaultRule(.latency(nanoseconds: 5000), .chance(1), calls: .only([.open]))]
    for name in ["a", "b", "c"] { try slow.open(name, .create).sync() }
    #expect(slow.simulatedNanoseconds == 15_000)
    #expect(clock.monotonicNanoseconds() == 15_000)
    #expect(slow.injected[.latency] == 3)
  }

  @Test("a fault that changed nothing is not counted")
  func vain() throws {
    disk.plan = [FaultRule(.staleRead, .chance(1)), FaultRule(.shortTransfer, .chance(1))]
    try file.sync()
    _ = try file.get(512)
    #expect(disk.injected.total == 0)
    #expect(disk.injected.missing(of: [.staleRead]) == [.staleRead])
  }

  @Test("damage at rest is there for everybody and for good")
  func damage() throws {
    #expect(disk.flipBit(8 * 600 + 3, inFile: "a"))
    var right = numbered(1..<21)
    right[600] ^= 8
    #expect(disk.contents(of: "a") == right)
    #expect(afterPowerCut(.loseAll) == right)
    disk.overwrite("a", at: 0, with: [5, 5])
    disk.cut("a", to: 3)
    #expect(afterPowerCut(.loseAll) == [5, 5, 1])
    disk.replace("a", with: [8])
    disk.replace("b", with: [9])
    #expect(SimulatedFileSystem(disk.snapshot(), keeping: .loseAll).contents(of: "b") == [9])
    disk.erase("a")
    #expect(SimulatedFileSystem(disk.snapshot(), keeping: .keepAll).files() == ["b"])
    #expect(!disk.flipBit(8, inFile: "b"))
    #expect(!disk.flipBit(-1, inFile: "b"))
    #expect(!disk.erase("a"))
    #expect(!disk.replace("x/a", with: []))
  }

  @Test("the error numbers are those of the running system")
  func numbers() throws {
    #expect(SimulatedErrno.all.map(\.rawValue) == SimulatedErrno.systems)
  }
}
