import Testing

@testable import TidemarkEngine

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#elseif canImport(Android)
  import Android
#endif

@Suite struct LocalFileSystemTests {
  @Test("files and directories are their owner's only")
  func permissions() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      _ = try fileSystem.open(path + "/a", .create)
      try fileSystem.createDirectory(path + "/d")
      _ = try fileSystem.lock(path + "/LOCK", owner: [])
      for (name, mode) in [("a", 0o600), ("LOCK", 0o600), ("d", 0o700)] {
        var info = stat()
        #expect(stat(path + "/" + name, &info) == 0)
        #expect(Int(info.st_mode) & 0o777 == mode, "\(name)")
      }
    }
  }

  @Test("a symbolic link counts as what it leads to")
  func links() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      _ = try fileSystem.open(path + "/a", .create)
      for (target, link) in [("a", "to file"), (".", "to directory"), ("none", "to nothing")] {
        #expect(symlink(target, path + "/" + link) == 0)
      }
      #expect(try fileSystem.kind(path + "/to file") == .file)
      #expect(try fileSystem.kind(path + "/to directory") == .directory)
      #expect(try fileSystem.kind(path + "/to nothing") == nil)
      for link in ["to file", "to directory", "to nothing"] {
        try fileSystem.remove(path + "/" + link)
      }
      #expect(try fileSystem.list(path) == ["a"])
    }
  }

  @Test("a named pipe is refused instead of waited for")
  func pipes() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      #expect(mkfifo(path + "/pipe", 0o600) == 0)
      let kind = try fileSystem.kind(path + "/pipe")
      #expect(kind == .other)
      for mode in [FileMode.read, .readWrite] {
        #expect(
          FileSystemTests.number { _ = try fileSystem.open(path + "/pipe", mode) }
            == ErrorNumber.invalidArgument)
      }
    }
  }

  @Test("a path with a zero byte is refused instead of cut")
  func zeroBytes() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let odd = path + "/a\u{0}b"
      let calls: [() throws -> Void] = [
        { _ = try fileSystem.open(odd, .create) }, { try fileSystem.createDirectory(odd) },
        { try fileSystem.remove(odd) }, { _ = try fileSystem.kind(odd) },
        { _ = try fileSystem.list(odd) }, { _ = try fileSystem.lock(odd, owner: []) },
        { try fileSystem.syncDirectory(odd) },
      ]
      for call in calls {
        #expect(FileSystemTests.number(call) == ErrorNumber.invalidArgument)
      }
      let names = try fileSystem.list(path)
      #expect(names == [])
    }
  }

  @Test("allocated bytes have space on the disk, and bytes there before stay")
  func allocation() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let file = try fileSystem.open(path + "/a", .create)
      try file.writeFully([1, 2, 3].rawSpan, at: 0)
      try file.allocate(to: 1 << 20)
      var info = stat()
      #expect(stat(path + "/a", &info) == 0)
      #expect(Int(info.st_blocks) * 512 >= 1 << 20)
      #expect(try file.read(4, at: 0) == [1, 2, 3, 0])
    }
  }

  @Test("zeros are written where the file system cannot allocate")
  func zeros() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      _ = try fileSystem.open(path + "/a", .create)
      let descriptor = try SystemFiles.open(path + "/a", .readWrite)
      defer { SystemFiles.close(descriptor) }
      try SystemFiles.writeZeros(descriptor, from: 10, to: 200_000)
      #expect(try SystemFiles.status(descriptor).length == 200_000)
    }
  }

  @Test("the lock excludes descriptors that do not know the table of this process")
  func systemLock() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let name = path + "/LOCK"
      let outsider = try SystemFiles.openOrCreate(name)
      defer { SystemFiles.close(outsider) }
      try #require(try SystemFiles.lock(outsider))
      _ = try SystemFiles.write(outsider, Array("outsider".utf8).rawSpan, at: 0)
      guard case .held(let owner) = try fileSystem.lock(name, owner: [1]) else {
        Issue.record("acquired twice")
        return
      }
      #expect(owner == Array("outsider".utf8))
      SystemFiles.unlock(outsider)
      let outcome = try fileSystem.lock(name, owner: [1])
      guard case .acquired = outcome else {
        Issue.record("not acquired")
        return
      }
      #expect(try !SystemFiles.lock(outsider))
      let text = try fileSystem.open(name, .read).read(100, at: 0)
      #expect(text.split(separator: UInt8(ascii: "\n")) == [[1]])
      _ = outcome
    }
  }

  @Test("a lock file keeps its length, so that taking the lock waits for no journal")
  func lengthOfLock() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let name = path + "/LOCK"
      for owner in ["pid 1234567\n", "pid 89\n", "pid 89\n", "pid 345\n"] {
        guard case .acquired(let lock) = try fileSystem.lock(name, owner: Array(owner.utf8)) else {
          Issue.record("not acquired")
          return
        }
        let text = try fileSystem.open(name, .read).read(100, at: 0)
        #expect(text.count == 12)
        #expect(String(decoding: text, as: UTF8.self).hasPrefix(owner))
        #expect(text.drop { $0 != UInt8(ascii: "\n") }.allSatisfy { $0 == UInt8(ascii: "\n") })
        lock.release()
      }
    }
  }

  @Test("two names of one lock file are one lock")
  func linkedLock() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let outcome = try fileSystem.lock(path + "/LOCK", owner: [1])
      #expect(link(path + "/LOCK", path + "/OTHER") == 0)
      guard case .heldByThisProcess = try fileSystem.lock(path + "/OTHER", owner: [2]) else {
        Issue.record("acquired twice")
        return
      }
      _ = outcome
    }
  }

  @Test("dropping files gives their descriptors back, closed or not")
  func descriptors() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let before = try fileSystem.list("/dev/fd").count
      for i in 0..<2_000 {
        let file = try fileSystem.open(path + "/a", i == 0 ? .create : .read)
        if i % 2 == 0 { file.close() }
      }
      // Other tests open files meanwhile, though few.
      let after = try fileSystem.list("/dev/fd").count
      #expect(after - before < 250)
    }
  }

  @Test("a closed file does not meet the file that has its descriptor now")
  func reusedDescriptor() throws {
    try FileSystemTests.with(.local) { fileSystem, path in
      let first = try fileSystem.open(path + "/a", .create)
      first.close()
      let others = try (0..<20).map { try fileSystem.open(path + "/\($0)", .create) }
      #expect(
        FileSystemTests.number { try first.writeFully([1].rawSpan, at: 0) }
          == ErrorNumber.badDescriptor)
      first.close()
      for other in others {
        let length = try other.length()
        #expect(length == 0)
      }
    }
  }
}
