import Testing
import TidemarkEngine
import TidemarkTestKit

@Suite("A simulated disk without faults")
struct FileSystemTests {
  let disk = SimulatedFileSystem(seed: 1)

  @Test("bytes that are written are read again")
  func readsBack() throws {
    let file = try disk.open("a", .create)
    #expect(try file.put(numbered(0..<30), at: 0) == 30 * 512)
    try file.put([9, 9, 9], at: 5000)
    var right = numbered(0..<30)
    right.replaceSubrange(5000..<5003, with: [9, 9, 9])
    #expect(try file.get(20_000) == right)
    #expect(try file.get(10, at: 4996) == Array(right[4996..<5006]))
    #expect(try file.get(10, at: 30 * 512) == [])
    #expect(try file.length() == 30 * 512)
  }

  @Test("a write beyond the end leaves zeros between")
  func gap() throws {
    let file = try disk.open("a", .create)
    try file.put([1], at: 10_000)
    #expect(try file.length() == 10_001)
    #expect(try file.get(10_001) == [UInt8](repeating: 0, count: 10_000) + [1])
  }

  @Test("a file that is cut and extended again has zeros where it was cut")
  func truncate() throws {
    let file = try disk.open("a", .create)
    try file.put([UInt8](repeating: 7, count: 9000))
    try file.truncate(to: 100)
    try file.truncate(to: 9000)
    #expect(
      try file.get(9000) == [UInt8](repeating: 7, count: 100) + [UInt8](repeating: 0, count: 8900))
  }

  @Test("allocate extends a file with zeros, keeps its bytes and never shortens it")
  func allocate() throws {
    let file = try disk.open("a", .create)
    try file.put([1, 2, 3])
    try file.allocate(to: 64 << 20)
    #expect(try file.length() == 64 << 20)
    #expect(try file.get(5) == [1, 2, 3, 0, 0])
    try file.allocate(to: 10)
    #expect(try file.length() == 64 << 20)
    #expect(disk.usedBytes == 64 << 20)
  }

  @Test("the modes of opening are kept apart")
  func modes() throws {
    #expect(number { _ = try disk.open("a", .read) } == .ENOENT)
    #expect(number { _ = try disk.open("a", .readWrite) } == .ENOENT)
    try disk.open("a", .create).put([1])
    #expect(number { _ = try disk.open("a", .create) } == .EEXIST)
    let reader = try disk.open("a", .read)
    #expect(number { try reader.put([1]) } == .EBADF)
    #expect(number { try reader.truncate(to: 0) } == .EBADF)
    #expect(number { try reader.allocate(to: 9) } == .EBADF)
    #expect(try reader.get(3) == [1])
    try disk.createDirectory("d")
    #expect(number { _ = try disk.open("d", .read) } == .EISDIR)
    #expect(number { _ = try disk.open("a/b", .create) } == .ENOTDIR)
    #expect(number { _ = try disk.open("x/b", .create) } == .ENOENT)
  }

  @Test("a closed file answers with EBADF, and closing again does nothing")
  func close() throws {
    let file = try disk.open("a", .create)
    #expect(disk.openFiles == 1)
    file.close()
    file.close()
    #expect(disk.openFiles == 0)
    #expect(number { _ = try file.length() } == .EBADF)
    #expect(number { try file.sync() } == .EBADF)
    #expect(number { _ = try file.get(1) } == .EBADF)
  }

  @Test("names are listed in byte order, and paths may be written in several ways")
  func list() throws {
    try disk.createDirectory("/d")
    for name in ["b", "é", "a10", "a9", "B"] { try disk.open("d/\(name)", .create).close() }
    #expect(try disk.list("d/") == ["B", "a10", "a9", "b", "é"])
    #expect(try disk.list("./d/../d") == disk.list("/d"))
    #expect(disk.files() == ["d/B", "d/a10", "d/a9", "d/b", "d/é"])
    #expect(number { _ = try disk.list("d/b") } == .ENOTDIR)
    #expect(number { _ = try disk.list("x") } == .ENOENT)
  }

  @Test("the kind of file at a path is told, nothing too")
  func kinds() throws {
    try disk.createDirectory("d")
    try disk.open("d/f", .create).close()
    #expect(try disk.kind("d") == .directory)
    #expect(try disk.kind("d/f") == .file)
    #expect(try disk.kind("d/g") == nil)
    #expect(try disk.kind("d/f/g") == nil)
  }

  @Test("a directory must have a parent, a new name, and be empty to be removed")
  func directories() throws {
    #expect(number { try disk.createDirectory("d/e") } == .ENOENT)
    try disk.createDirectory("d")
    #expect(number { try disk.createDirectory("d") } == .EEXIST)
    try disk.createDirectory("d/e")
    #expect(number { try disk.remove("d") } == .ENOTEMPTY)
    try disk.remove("d/e")
    try disk.remove("d")
    #expect(number { try disk.remove("d") } == .ENOENT)
  }

  @Test("a removed file lives on for those who have it open, and its space with it")
  func removedButOpen() throws {
    let file = try disk.open("a", .create)
    try file.put([UInt8](repeating: 1, count: 5000))
    try disk.remove("a")
    #expect(try file.get(2) == [1, 1])
    #expect(disk.usedBytes == 8192)
    file.close()
    #expect(disk.usedBytes == 0)
  }

  @Test("a lock is had by one at a time, and whoever comes later is told by whom")
  func locks() throws {
    let other = disk.anotherProcess()
    guard case .acquired(let lock) = try disk.lock("LOCK", owner: Array("pid 1".utf8)) else {
      Issue.record("the lock of nobody was taken")
      return
    }
    for second in [other, disk] {
      guard case .held(let owner) = try second.lock("LOCK", owner: [2]) else {
        Issue.record("two have the lock")
        return
      }
      #expect(owner == Array("pid 1".utf8))
    }
    lock.release()
    lock.release()
    guard case .acquired = try other.lock("LOCK", owner: [2]) else {
      Issue.record("a released lock is still held")
      return
    }
    #expect(disk.contents(of: "LOCK") == [2])
  }

  @Test("lengths and offsets that make no sense are refused")
  func nonsense() throws {
    let file = try disk.open("a", .create)
    #expect(number { try file.put([1], at: -1) } == .EINVAL)
    #expect(number { try file.put([1], at: .max) } == .EFBIG)
    #expect(number { try file.truncate(to: -1) } == .EINVAL)
    #expect(number { try file.truncate(to: .max) } == .EFBIG)
    #expect(number { try file.allocate(to: .max) } == .EFBIG)
    #expect(number { _ = try file.get(1, at: -1) } == .EINVAL)
    #expect(number { _ = try disk.open("", .create) } == .EEXIST)
    #expect(try file.put([]) == 0)
  }

  @Test("a full disk cuts a write short, then refuses, and takes writes again when there is space")
  func capacity() throws {
    disk.capacity = 3 * 4096
    let a = try disk.open("a", .create)
    try a.put([UInt8](repeating: 1, count: 4096))
    let b = try disk.open("b", .create)
    #expect(try b.put([UInt8](repeating: 2, count: 10_000)) == 8192)
    #expect(number { try b.put([2], at: 8192) } == .ENOSPC)
    #expect(number { try b.allocate(to: 8193) } == .ENOSPC)
    try b.put([3], at: 8191)
    try b.truncate(to: 20_000)
    #expect(number { try b.put([2], at: 19_000) } == .ENOSPC)
    #expect(disk.injected[.diskFull] == 4)
    try disk.remove("a")
    #expect(number { try b.put([2], at: 8192) } == .ENOSPC)
    a.close()
    #expect(try b.put([2], at: 8192) == 1)
  }

  @Test("allocated space is there when the disk is full")
  func allocatedSpace() throws {
    let file = try disk.open("a", .create)
    try file.allocate(to: 10_000)
    disk.capacity = 0
    #expect(try file.put([UInt8](repeating: 1, count: 10_000)) == 10_000)
    #expect(number { try file.put([1], at: 12_288) } == .ENOSPC)
  }

  @Test("a process that opens too many files is told so")
  func tooManyFiles() throws {
    disk.maximumOpenFiles = 2
    let a = try disk.open("a", .create)
    let b = try disk.open("b", .create)
    #expect(number { _ = try disk.open("a", .read) } == .EMFILE)
    _ = try disk.anotherProcess().open("a", .read)
    a.close()
    _ = try disk.open("a", .read)
    b.close()
  }
}
