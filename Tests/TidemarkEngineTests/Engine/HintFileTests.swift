import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Files of hints beside the log")
struct HintFileTests {
  let store = TestStore()

  private func files() throws -> [String] { try store.disk.list("/store/hints").sorted() }

  @Test("the content that was written last is read, also after the store was opened again")
  func roundTrip() throws {
    var engine = try store.open()
    let hints = HintFile(engine.writer, name: "test")
    #expect(hints.read() == nil)
    for round in 1...5 {
      let content = [UInt8](repeating: UInt8(round), count: 100 * (6 - round))
      try hints.write(content)
      #expect(hints.read() == content)
    }
    #expect(try files() == ["test.0", "test.1"])
    #expect(HintFile(engine.writer, name: "other").read() == nil)
    try engine.close()
    engine = try store.open(.write)
    #expect(HintFile(engine.writer, name: "test").read()?.count == 100)
    try engine.close()
  }

  @Test("a copy that is torn leaves the one before it, and no bytes of a file make reading fail")
  func torn() throws {
    let engine = try store.open()
    let hints = HintFile(engine.writer, name: "test")
    try hints.write([1])
    try hints.write([2])
    let path = "/store/hints/test.1"
    let file = try store.disk.open(path, .readWrite)
    let whole = try file.read(1_000, at: 0)
    for length in 0..<whole.count {
      try file.truncate(to: length)
      #expect(hints.read() == [1])
    }
    for place in whole.indices {
      var damaged = whole
      damaged[place] ^= 0x55
      try file.writeFully(damaged.rawSpan, at: 0)
      #expect(hints.read() == [1], "byte \(place)")
    }
    file.close()
    try hints.write([3])
    #expect(hints.read() == [3])
    try engine.close()
  }

  @Test("a store that is read only, or closed, gets no hints, and one that is full says so")
  func refused() throws {
    let engine = try store.open()
    try engine.put("k", "1")
    let hints = HintFile(engine.writer, name: "test")
    store.disk.plan = [
      FaultRule(.error(.ENOSPC), .call(1), calls: .only([.write]), path: "hints", times: .max)
    ]
    let full = #expect(throws: TidemarkError.self) { try hints.write([1]) }
    #expect(full?.code == .noSpace)
    store.disk.plan = .none
    #expect(hints.read() == nil)
    try engine.close()
    let closed = #expect(throws: TidemarkError.self) { try hints.write([1]) }
    #expect(closed?.code == .closed)
    let reader = try store.open(.readOnly)
    let refused = #expect(throws: TidemarkError.self) {
      try HintFile(reader.writer, name: "test").write([1])
    }
    #expect(refused?.code == .readOnly)
    try reader.close()
  }

  #if Encryption
    @Test("hints of an encrypted store are encrypted, and those of another key are not read")
    func encrypted() throws {
      let store = TestStore.encrypted()
      let text = Array("articles/ that somebody has read".utf8)
      let engine = try store.open()
      let hints = HintFile(engine.writer, name: "test")
      try hints.write(text)
      #expect(hints.read() == text)
      let file = try store.disk.open("/store/hints/test.0", .read)
      let bytes = try file.read(1_000, at: 0)
      #expect(!bytes.indices.contains { bytes[$0...].starts(with: text.prefix(8)) })
      file.close()
      try engine.compact(CompactionOptions(newKey: TestKeys.encryption(2)))
      #expect(try files(of: store) == [])
      try hints.write(text)
      #expect(hints.read() == text)
      try engine.close()
    }

    private func files(of store: TestStore) throws -> [String] {
      try store.disk.list("/store/hints")
    }
  #endif
}
