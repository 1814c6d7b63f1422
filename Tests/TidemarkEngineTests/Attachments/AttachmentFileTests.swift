import Testing
import TidemarkTestKit

@testable import TidemarkEngine

@Suite("Files of attachments")
struct AttachmentFileTests {
  let store = TestStore()
  private let folder = "/store/attachments"

  private func content(_ length: Int, seed: UInt64 = 3) -> [UInt8] {
    var chance = SeededGenerator(seed: seed)
    return chance.bytes(length)
  }

  private func write(_ bytes: [UInt8], to engine: Engine) throws -> AttachmentHold {
    let writer = try engine.newAttachment()
    try writer.write(bytes.rawSpan)
    return try writer.finish()
  }

  private func read(_ id: AttachmentID, _ engine: Engine) throws -> [UInt8]? {
    guard let reader = try engine.openAttachment(id) else { return nil }
    var bytes: [UInt8] = []
    while bytes.count < reader.length { bytes += try reader.read(at: bytes.count, count: 1 << 20) }
    return bytes
  }

  @Test("content of any length comes back, named after its SHA-256")
  func lengths() throws {
    let engine = try store.open()
    let piece = AttachmentHeader.pieceBytes
    for length in [0, 1, piece - 1, piece, piece + 1, 3 * piece + 17] {
      let bytes = content(length)
      let hold = try write(bytes, to: engine)
      #expect(hold.id.hash == SHA256.hash(bytes.rawSpan) && hold.id.length == UInt64(length))
      #expect(try read(hold.id, engine) == bytes, "\(length) bytes")
      #expect(try engine.attachments.hashes() == [hold.id.hash])
      try store.disk.remove(folder + "/" + hold.id.fileName)
    }
    try engine.close()
  }

  @Test("an attachment is read from any place")
  func places() throws {
    let engine = try store.open()
    let bytes = content(200_000)
    let hold = try write(bytes, to: engine)
    let reader = try #require(try engine.openAttachment(hold.id))
    for offset in [0, 1, 65_535, 65_536, 131_072, 199_999] {
      let part = try reader.read(at: offset, count: 10)
      #expect(!part.isEmpty && part == Array(bytes[offset..<(offset + part.count)]))
    }
    #expect(try reader.read(at: 200_000, count: 1) == [])
    #expect(throws: TidemarkError.self) { try reader.read(at: -1, count: 1) }
    try engine.close()
  }

  @Test("no change of any byte, and no cut, gives other content than was written")
  func damage() throws {
    let engine = try store.open()
    let bytes = content(70_000)
    let hold = try write(bytes, to: engine)
    let path = folder + "/" + hold.id.fileName
    let whole = try #require(store.disk.contents(of: path))
    var chance = SeededGenerator(seed: 5)
    var places = Array(0..<AttachmentHeader.byteCount) + [whole.count - 1, whole.count - 5]
    for _ in 0..<200 { places.append(chance.int(below: whole.count)) }
    for place in places {
      var damaged = whole
      damaged[place] ^= 1 << UInt8(chance.int(below: 8))
      #expect(store.disk.replace(path, with: damaged))
      let error = #expect(throws: TidemarkError.self, "byte \(place)") {
        try read(hold.id, engine)
      }
      #expect(error?.code == .damaged && error?.file == "attachments/\(hold.id.fileName)")
    }
    for length in [0, 10, 255, 256, 70_000, whole.count - 1] {
      #expect(store.disk.replace(path, with: Array(whole.prefix(length))))
      #expect(throws: TidemarkError.self) { try read(hold.id, engine) }
    }
    // Pieces that changed places are not where they belong.
    let long = try write(content(131_072, seed: 9), to: engine)
    let other = folder + "/" + long.id.fileName
    let file = try #require(store.disk.contents(of: other))
    let (first, second) = (256..<(256 + 65_540), (256 + 65_540)..<(256 + 2 * 65_540))
    #expect(
      store.disk.replace(
        other, with: Array(file[..<256]) + Array(file[second]) + Array(file[first])))
    #expect(throws: TidemarkError.self) { try read(long.id, engine) }
    // The same content heals it.
    let again = try write(bytes, to: engine)
    #expect(try read(again.id, engine) == bytes)
    try engine.close()
  }

  @Test("an attachment of an encrypted store shows nothing of itself and changes keys with it")
  func encryption() throws {
    try #require(Encryption.isAvailable)
    var encrypted = store
    func key(_ byte: UInt8) -> Encryption {
      let key = [UInt8](repeating: byte, count: 32)
      return Encryption.key { id in id == nil || id == Encryption.id(ofKey: key) ? key : nil }
    }
    let (first, second) = (key(1), key(2))
    encrypted.configuration.encryption = first
    var engine = try encrypted.open()
    let bytes = [UInt8](repeating: 0x41, count: 100_000)
    let hold = try write(bytes, to: engine)
    try engine.attach(hold.id, to: "k")
    let path = folder + "/" + hold.id.fileName
    let stored = try #require(store.disk.contents(of: path))
    #expect(!stored.hasPart(Array(repeating: 0x41, count: 16)))
    #expect(try read(hold.id, engine) == bytes)
    // A file that somebody has put there without the key must not be believed.
    let plain = TestStore()
    let other = try plain.open()
    let forged = try write(bytes, to: other)
    var file = try #require(plain.disk.contents(of: folder + "/" + forged.id.fileName))
    file[300] ^= 1
    let header = try AttachmentHeader(decoding: file)
    let piece = Array(file[256..<(256 + 65_536)])
    var sum = ByteWriter(capacity: 4)
    sum.u32(AttachmentHeader.checksum(of: piece.rawSpan, 0, inFile: header.number))
    file.replaceSubrange((256 + 65_536)..<(256 + 65_540), with: sum.bytes)
    #expect(store.disk.replace(path, with: file))
    #expect(throws: TidemarkError.self) { try read(hold.id, engine) }
    #expect(store.disk.replace(path, with: stored))
    try engine.compact(CompactionOptions(newKey: second))
    #expect(try read(hold.id, engine) == bytes)
    try engine.close()
    encrypted.configuration.encryption = second
    engine = try encrypted.open(.write)
    #expect(try read(hold.id, engine) == bytes)
    try engine.close()
  }

  @Test("content that was released is gone, is remembered, and comes back when it is attached")
  func release() throws {
    let engine = try store.open()
    let bytes = content(100_000)
    let hold = try write(bytes, to: engine)
    try engine.attach(hold.id, to: "k")
    let before = store.disk.usedBytes
    try engine.releaseAttachment(hold.id)
    #expect(before - store.disk.usedBytes >= 90_000)
    #expect(try read(hold.id, engine) == nil)
    #expect(try engine.attachments.contains(hold.id))
    _ = try write(bytes, to: engine)
    #expect(try read(hold.id, engine) == bytes)
    try engine.close()
  }

  @Test("a full disk leaves nothing of content that did not fit, nor does a writer that is let go")
  func full() throws {
    let engine = try store.open()
    try engine.put("k", "1")
    store.disk.capacity = store.disk.usedBytes + 100_000
    let error = #expect(throws: TidemarkError.self) {
      _ = try write(content(1_000_000), to: engine)
    }
    #expect(error?.code == .noSpace)
    #expect(try store.disk.list(folder).isEmpty)
    store.disk.capacity = nil
    var writer: AttachmentFileWriter? = try engine.newAttachment()
    try writer?.write(content(100_000).rawSpan)
    #expect(try store.disk.list(folder).count == 1)
    writer = nil
    #expect(try store.disk.list(folder).isEmpty)
    try engine.close()
  }
}

extension Engine {
  /// Puts an entry that names an attachment.
  @discardableResult
  func attach(
    _ id: AttachmentID, to key: String, cached: Bool = false
  ) throws -> UInt64 {
    var batch = OperationBatch()
    var attributes = EntryAttributes()
    attributes.attachment = id
    if cached { attributes.entryClass = .cache }
    try batch.add(.put, key: bytes(key).rawSpan, value: RawSpan(), attributes: attributes)
    return try commit(batch).sequences.lowerBound
  }
}

extension Array where Element == UInt8 {
  fileprivate func hasPart(_ part: [UInt8]) -> Bool {
    guard count >= part.count else { return false }
    return (0...(count - part.count)).contains { self[$0..<($0 + part.count)].elementsEqual(part) }
  }
}
