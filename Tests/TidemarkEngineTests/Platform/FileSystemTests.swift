import Testing
import TidemarkEngine

/// The duties of every file system, run against each of them.
@Suite struct FileSystemTests {
  enum Kind: String, CaseIterable, Sendable { case local, memory }

  /// Calls `body` with a file system and the path of an empty directory in it.
  static func with(_ kind: Kind, _ body: (any FileSystem, String) throws -> Void) throws {
    switch kind {
    case .memory:
      let fileSystem = MemoryFileSystem()
      try fileSystem.createDirectory("/test")
      try body(fileSystem, "/test")
    case .local:
      let fileSystem = LocalFileSystem()
      let path = "/tmp/tidemark-test-\(SystemRandom().next())"
      try fileSystem.createDirectory(path)
      defer { removeAll(fileSystem, path) }
      try body(fileSystem, path)
    }
  }

  private static func removeAll(_ fileSystem: any FileSystem, _ path: String) {
    for name in (try? fileSystem.list(path)) ?? [] { removeAll(fileSystem, path + "/" + name) }
    try? fileSystem.remove(path)
  }

  static func number(_ body: () throws -> Void) -> Int32? {
    do {
      try body()
      return nil
    } catch {
      return (error as? FileSystemError)?.number
    }
  }

  @Test("written bytes come back, also after closing and opening", arguments: Kind.allCases)
  func roundTrip(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let text = Array("the tide leaves its mark".utf8)
      let file = try fileSystem.open(path + "/a", .create)
      try file.writeFully(text.rawSpan, at: 100)
      #expect(try file.length() == 124)
      #expect(try file.read(1_000, at: 90) == [UInt8](repeating: 0, count: 10) + text)
      try file.sync()
      file.close()
      try fileSystem.syncDirectory(path)
      let again = try fileSystem.open(path + "/a", .read)
      #expect(try again.read(8, at: 104) == Array("tide lea".utf8))
      #expect(try again.read(10, at: 124) == [])
      #expect(try again.read(10, at: 1_000) == [])
    }
  }

  @Test("opening follows its mode", arguments: Kind.allCases)
  func modes(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let name = path + "/a"
      #expect(Self.number { _ = try fileSystem.open(name, .read) } == ErrorNumber.noEntry)
      #expect(Self.number { _ = try fileSystem.open(name, .readWrite) } == ErrorNumber.noEntry)
      _ = try fileSystem.open(name, .create)
      #expect(Self.number { _ = try fileSystem.open(name, .create) } == ErrorNumber.exists)
      let bytes: [UInt8] = [1, 2, 3]
      try fileSystem.open(name, .readWrite).writeFully(bytes.rawSpan, at: 0)
      let reader = try fileSystem.open(name, .read)
      #expect(
        Self.number { try reader.writeFully(bytes.rawSpan, at: 0) } == ErrorNumber.badDescriptor)
      #expect(try reader.read(10, at: 0) == bytes)
      #expect(Self.number { _ = try fileSystem.open(path, .read) } == ErrorNumber.isADirectory)
      #expect(
        Self.number { _ = try fileSystem.open(name + "/b", .read) } == ErrorNumber.notADirectory)
    }
  }

  @Test("a closed file refuses everything, and closing again is fine", arguments: Kind.allCases)
  func closed(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let file = try fileSystem.open(path + "/a", .create)
      file.close()
      file.close()
      let bytes: [UInt8] = [1]
      let calls: [() throws -> Void] = [
        { _ = try file.length() }, { try file.sync() }, { try file.truncate(to: 0) },
        { try file.allocate(to: 1) }, { try file.writeFully(bytes.rawSpan, at: 0) },
        { _ = try file.read(1, at: 0) },
      ]
      for call in calls { #expect(Self.number(call) == ErrorNumber.badDescriptor) }
    }
  }

  @Test("cutting, extending and allocating keep what is before", arguments: Kind.allCases)
  func lengths(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let file = try fileSystem.open(path + "/a", .create)
      let bytes = [UInt8](repeating: 7, count: 100_000)
      try file.writeFully(bytes.rawSpan, at: 0)
      try file.truncate(to: 70_000)
      try file.truncate(to: 90_000)
      #expect(try file.read(2, at: 69_999) == [7, 0])
      try file.allocate(to: 200_000)
      #expect(try file.length() == 200_000)
      try file.allocate(to: 10)
      #expect(try file.length() == 200_000)
      let all = try file.read(300_000, at: 0)
      #expect(all[..<70_000].allSatisfy { $0 == 7 } && all[70_000...].allSatisfy { $0 == 0 })
      #expect(all.count == 200_000)
      #expect(Self.number { try file.truncate(to: -1) } == ErrorNumber.invalidArgument)
      try file.truncate(to: 0)
      #expect(try file.length() == 0)
    }
  }

  @Test("a directory lists its names in byte order", arguments: Kind.allCases)
  func listing(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      for name in ["b", "a", "ab", "B", "z\u{e9}", "~", "10", "9"] {
        _ = try fileSystem.open(path + "/" + name, .create)
      }
      try fileSystem.createDirectory(path + "/c")
      let names = try fileSystem.list(path)
      #expect(names == ["10", "9", "B", "a", "ab", "b", "c", "z\u{e9}", "~"])
      #expect(Self.number { _ = try fileSystem.list(path + "/no") } == ErrorNumber.noEntry)
      #expect(Self.number { _ = try fileSystem.list(path + "/a") } == ErrorNumber.notADirectory)
    }
  }

  @Test("files and empty directories can be removed, full ones cannot", arguments: Kind.allCases)
  func removing(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      try fileSystem.createDirectory(path + "/d")
      #expect(Self.number { try fileSystem.createDirectory(path + "/d") } == ErrorNumber.exists)
      let file = try fileSystem.open(path + "/d/a", .create)
      try file.writeFully([1, 2].rawSpan, at: 0)
      #expect(Self.number { try fileSystem.remove(path + "/d") } == ErrorNumber.directoryNotEmpty)
      #expect(try fileSystem.kind(path + "/d") == .directory)
      #expect(try fileSystem.kind(path + "/d/a") == .file)
      try fileSystem.remove(path + "/d/a")
      #expect(try fileSystem.kind(path + "/d/a") == nil)
      #expect(try file.read(2, at: 0) == [1, 2])
      try fileSystem.remove(path + "/d")
      #expect(try fileSystem.kind(path + "/d") == nil)
      #expect(try fileSystem.kind(path + "/d/a") == nil)
      #expect(Self.number { try fileSystem.remove(path + "/d") } == ErrorNumber.noEntry)
    }
  }

  @Test("a lock is held once, shows its owner, and can be taken again", arguments: Kind.allCases)
  func locking(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let name = path + "/LOCK"
      let owner = Array("process 1".utf8)
      guard case .acquired(let lock) = try fileSystem.lock(name, owner: owner) else {
        Issue.record("not acquired")
        return
      }
      #expect(try fileSystem.open(name, .read).read(100, at: 0) == owner)
      guard case .heldByThisProcess = try fileSystem.lock(name, owner: [1]) else {
        Issue.record("acquired twice")
        return
      }
      lock.release()
      lock.release()
      guard case .acquired(let second) = try fileSystem.lock(name, owner: [2]) else {
        Issue.record("not released")
        return
      }
      lock.release()
      guard case .heldByThisProcess = try fileSystem.lock(name, owner: [3]) else {
        Issue.record("released by an earlier holder")
        return
      }
      // A longer text before it may be filled up with line feeds.
      let text = try fileSystem.open(name, .read).read(100, at: 0)
      #expect(text.split(separator: UInt8(ascii: "\n")) == [[2]])
      _ = second
    }
  }

  @Test("a lock that is dropped is released", arguments: Kind.allCases)
  func droppedLock(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      for _ in 0..<3 {
        guard case .acquired = try fileSystem.lock(path + "/LOCK", owner: []) else {
          Issue.record("still held")
          return
        }
      }
    }
  }

  @Test("reads may run beside writes and a close", arguments: Kind.allCases)
  func concurrency(kind: Kind) throws {
    try Self.with(kind) { fileSystem, path in
      let file = try fileSystem.open(path + "/a", .create)
      try file.writeFully([UInt8](repeating: 5, count: 4_096).rawSpan, at: 0)
      let outcomes = Lock<[Bool]>([])
      let readers = try (0..<3).map { _ in
        try WorkerThread(name: "reader") {
          while true {
            do throws(FileSystemError) {
              let bytes = try file.read(4_096, at: 0)
              if bytes.contains(where: { $0 != 5 }) { outcomes.withLock { $0.append(false) } }
            } catch {
              return outcomes.withLock { $0.append(error.number == ErrorNumber.badDescriptor) }
            }
          }
        }
      }
      for i in 0..<200 { try file.writeFully([5, 5].rawSpan, at: i) }
      file.close()
      for reader in readers { reader.join() }
      #expect(outcomes.withLock { $0 } == [true, true, true])
    }
  }

  @Test("random writes, cuts and reads agree with an array", arguments: Kind.allCases)
  func model(kind: Kind) throws {
    let seed = SystemRandom().next()
    var generator = SplitMix(state: seed)
    try Self.with(kind) { fileSystem, path in
      let file = try fileSystem.open(path + "/a", .create)
      var model: [UInt8] = []
      for step in 0..<300 {
        let offset = Int(generator.next() % 300_000)
        let count = Int(generator.next() % 100_000)
        switch generator.next() % 4 {
        case 0:
          let bytes = [UInt8](repeating: UInt8(1 + step % 255), count: count)
          try file.writeFully(bytes.rawSpan, at: offset)
          if count > 0 {
            model += [UInt8](repeating: 0, count: max(0, offset + count - model.count))
            model.replaceSubrange(offset..<(offset + count), with: bytes)
          }
        case 1 where step % 3 == 0:
          try file.truncate(to: offset)
          model = Array(model.prefix(offset))
          model += [UInt8](repeating: 0, count: offset - model.count)
        case 2 where step % 3 == 0:
          try file.allocate(to: offset)
          model += [UInt8](repeating: 0, count: max(0, offset - model.count))
        default:
          let expected = Array(model.dropFirst(offset).prefix(count))
          #expect(try file.read(count, at: offset) == expected, "seed \(seed), step \(step)")
        }
      }
      #expect(try file.read(.max, at: 0) == model, "seed \(seed)")
    }
  }

  @Test("the boot identifier is sixteen bytes that stay", arguments: Kind.allCases)
  func bootIdentifier(kind: Kind) throws {
    try Self.with(kind) { fileSystem, _ in
      let first = try fileSystem.bootIdentifier()
      #expect(first.count == 16)
      #expect(try fileSystem.bootIdentifier() == first)
    }
  }
}
