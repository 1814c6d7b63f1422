import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite struct FileIOTests {
  /// A file that transfers as the test says.
  private final class OddFile: File {
    let content: [UInt8]
    /// The count that a read or write claims to have moved, given what was asked.
    let moved: @Sendable (Int) -> Int
    let written = Lock<[UInt8]>([])

    init(_ content: [UInt8], _ moved: @escaping @Sendable (Int) -> Int) {
      self.content = content
      self.moved = moved
    }

    func length() -> Int { content.count }

    func read(into buffer: inout MutableRawSpan, at offset: Int) -> Int {
      let count = moved(min(buffer.byteCount, content.count - offset))
      if count > 0, count <= content.count - offset, count <= buffer.byteCount {
        let part = Array(content[offset..<(offset + count)])
        buffer.store(copying: part.rawSpan, at: 0)
      }
      return count
    }

    func write(_ bytes: RawSpan, at offset: Int) -> Int {
      let count = moved(bytes.byteCount)
      if count > 0, count <= bytes.byteCount {
        written.withLock { $0.append(copying: bytes.extracting(first: count)) }
      }
      return count
    }

    func truncate(to length: Int) {}
    func allocate(to length: Int) {}
    func sync() {}
    func close() {}
  }

  @Test("short transfers are continued until all is moved")
  func shortTransfers() throws {
    let content = (0..<100).map { UInt8($0) }
    let file = OddFile(content) { min($0, 7) }
    #expect(try file.read(60, at: 10) == Array(content[10..<70]))
    #expect(try file.read(1_000, at: 10) == Array(content[10...]))
    try file.writeFully(content.rawSpan, at: 0)
    #expect(file.written.withLock { $0 } == content)
  }

  @Test("a file that moves nothing, too much or less than nothing cannot loop or trap")
  func oddTransfers() throws {
    let content = (0..<100).map { UInt8($0) }
    for count in [0, -1, 1_000] {
      let file = OddFile(content) { _ in count }
      #expect(throws: FileSystemError.self) { try file.writeFully(content.rawSpan, at: 0) }
      if count == 0 {
        #expect(try file.read(10, at: 0) == [])
      } else {
        #expect(throws: FileSystemError.self) { try file.read(10, at: 0) }
      }
    }
  }

  @Test("a length from a damaged file allocates no more than the file has")
  func boundedRead() throws {
    let file = OddFile([1, 2, 3]) { $0 }
    #expect(try file.read(.max, at: 0) == [1, 2, 3])
    #expect(try file.read(.max, at: .max) == [])
    #expect(throws: FileSystemError.self) { try file.read(-1, at: 0) }
    #expect(throws: FileSystemError.self) { try file.read(1, at: -1) }
  }

  @Test("errors of the system become errors of the store, naming the path")
  func storeErrors() {
    let codes: [(Int32, TidemarkError.Code)] = [
      (ErrorNumber.noSpace, .noSpace), (ErrorNumber.quotaExceeded, .noSpace),
      (ErrorNumber.accessDenied, .permissionDenied), (ErrorNumber.notPermitted, .permissionDenied),
      (ErrorNumber.readOnlyFileSystem, .permissionDenied),
      (ErrorNumber.inputOutput, .inputOutput), (ErrorNumber.tooManyOpenFiles, .inputOutput),
    ]
    for (number, code) in codes {
      let error = TidemarkError(
        FileSystemError(.write, path: "/data/x.seg", number: number), while: "appending")
      #expect(error.code == code)
      #expect(error.message.contains("/data/x.seg") && error.message.contains("appending"))
      #expect(!error.message.contains("\n"))
      #expect((error.cause as? FileSystemError)?.number == number)
    }
    #expect(ErrorNumber.text(ErrorNumber.noEntry) == "No such file or directory")
  }

  enum ReadOnlyWork: CaseIterable { case create, open, attach, backup, repair }

  @Test(
    "a read-only file system is told as that, and not as a lack of rights",
    arguments: ReadOnlyWork.allCases)
  func readOnly(work: ReadOnlyWork) throws {
    let store = TestStore()
    let engine = try store.open()
    let everything = FaultRule(.error(.EROFS), .call(1), calls: .mutating, times: .max)
    if work == .open || work == .repair { try engine.close() }
    store.disk.plan = [everything]
    let error = #expect(throws: TidemarkError.self) {
      switch work {
      case .create:
        try Engine.open(
          "/other", configuration: store.configuration, environment: store.environment()
        ).close()
      case .open: try store.open(.write).close()
      case .attach:
        let writer = try engine.newAttachment()
        try writer.write([1].rawSpan)
        _ = try writer.finish()
      case .backup: try engine.backup(to: "/copy")
      case .repair:
        _ = try StoreRepair.repair(
          from: store.path, into: "/repaired", environment: store.environment())
      }
    }
    #expect(error?.code == .permissionDenied)
    let message = error?.message ?? ""
    #expect(message.contains("read-only") && !message.contains("no permission"), "\(message)")
  }

  @Test("a boot identifier is parsed from a UUID and from nothing else")
  func uuids() {
    let text = "01234567-89ab-CDEF-0011-2233445566ff\n"
    #expect(
      parseUUID(Array(text.utf8)) == [
        0x01, 0x23, 0x45, 0x67, 0x89, 0xAB, 0xCD, 0xEF, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xFF,
      ])
    for wrong in ["", "01234567", text.dropLast(2) + "g", text + "00"] {
      #expect(parseUUID(Array(wrong.utf8)) == nil)
    }
  }
}
