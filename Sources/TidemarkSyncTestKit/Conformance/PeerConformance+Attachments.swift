internal import Tidemark
internal import TidemarkEngine
internal import TidemarkSync

extension PeerConformance {
  /// Attachments, of peers that say at the hello that they take them.
  static let attachmentChecks: [Check] = [
    Check("content in parts is there once it is whole, and a batch that names it not before") {
      bench in
      guard var (writer, content, film) = try await bench.film() else { return }
      let change = writer.put("film", "1", attachment: film)
      let batch = writer.batch([change])
      try await bench.expectFailure([.busy], "a batch whose attachment has not come") {
        try await bench.peer.push(batch)
      }
      try await bench.send(content, film, of: writer, from: 0, through: 100_000)
      try await bench.expectFailure([.busy], "a batch whose attachment has come in part") {
        try await bench.peer.push(batch)
      }
      try await bench.send(content, film, of: writer, from: 65_536)
      let answer = try await bench.peer.push(batch)
      try bench.expect(answer.mark.number, is: batch.number, "the mark once the content is there")
      let entries = try await bench.pullAll(Writer(2).replica).entries
      try bench.expect(
        entries.map(\.content.attachment), is: [film], "the attachments of a page")
      let read = try await bench.fetchAll(film, for: Writer(2))
      try bench.expect(read == content, "the content is another one than was sent")
    },
    Check("content that is there is not wanted again") { bench in
      guard var (writer, content, film) = try await bench.film() else { return }
      try await bench.send(content, film, of: writer, from: 0)
      try await bench.push(&writer, writer.put("film", "1", attachment: film))
      let other = try await bench.writer(2)
      let question = AttachRequest(
        replica: other.replica, key: Array("film".utf8), attachment: film, offset: 0, bytes: [])
      try bench.expect(
        try await bench.peer.attach(question).received, is: film.length, "what is there")
    },
    Check("content that is not what its hash says is refused") { bench in
      guard var (writer, content, film) = try await bench.film() else { return }
      var other = content
      other[70_000] ^= 1
      try await bench.expectFailure([.malformed], "other content than the hash says") {
        try await bench.send(other, film, of: writer, from: 0)
      }
      let batch = writer.batch([writer.put("film", "1", attachment: film)])
      try await bench.expectFailure([.busy], "a batch whose attachment was refused") {
        try await bench.peer.push(batch)
      }
      try await bench.send(content, film, of: writer, from: 0)
      try bench.expect(
        try await bench.peer.push(batch).mark.number, is: batch.number,
        "the mark once the content has come")
    },
    Check("content is to be had for the key whose entry names it, and for no other") { bench in
      guard var (writer, content, film) = try await bench.film() else { return }
      try await bench.send(content, film, of: writer, from: 0)
      try await bench.push(
        &writer, writer.put("film", "1", attachment: film), writer.put("note", "1"))
      for (key, wanted) in [("note", film), ("nothing", film), ("film", .of([1, 2, 3]))] {
        let answer = try await bench.peer.fetch(
          ContentRequest(
            replica: Writer(2).replica, key: Array(key.utf8), attachment: wanted, offset: 0,
            limit: 1_000))
        try bench.expect(answer.bytes == nil, "\(key) gives content that it does not name")
      }
    },
  ]
}

extension PeerConformance.Bench {
  /// A writer, and content of three pieces with its name; nil where the peer takes none.
  fileprivate func film() async throws -> (
    PeerConformance.Writer, [UInt8], AttachmentReference
  )? {
    let writer = PeerConformance.Writer(1)
    let hello = try await peer.hello(HelloRequest(replica: writer.replica))
    guard let most = hello.attachmentBytes, most >= 150_000 else { return nil }
    let content = (0..<150_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
    return (writer, content, .of(content))
  }

  /// Sends content, in parts of two pieces.
  fileprivate func send(
    _ content: [UInt8], _ film: AttachmentReference, of writer: PeerConformance.Writer,
    from start: Int, through end: Int = .max
  ) async throws {
    let part = 2 * AttachRequest.partBytes
    var offset = start
    while offset < min(end, content.count) {
      // Up to where the caller wants, in whole pieces.
      let stop = end == .max ? offset + part : offset + AttachRequest.partBytes
      let bytes = Array(content[offset..<min(stop, content.count)])
      let answer = try await peer.attach(
        AttachRequest(
          replica: writer.replica, key: Array("film".utf8), attachment: film, offset: offset,
          bytes: bytes))
      try expect(answer.rejection == nil, "content of \(content.count) bytes is refused")
      try expect(answer.received > offset, "a part of a content does not count")
      try expect(
        answer.received <= offset + bytes.count, "more of a content counts than was sent")
      offset = answer.received
      if end != .max { return }
    }
  }

  fileprivate func fetchAll(
    _ film: AttachmentReference, for writer: PeerConformance.Writer
  ) async throws -> [UInt8] {
    var content: [UInt8] = []
    while content.count < film.length {
      let answer = try await peer.fetch(
        ContentRequest(
          replica: writer.replica, key: Array("film".utf8), attachment: film,
          offset: content.count, limit: AttachRequest.partBytes))
      guard let bytes = answer.bytes, !bytes.isEmpty else {
        throw Broken("content of an entry is not to be had")
      }
      content += bytes
    }
    return content
  }
}

extension AttachmentReference {
  fileprivate static func of(_ content: [UInt8]) -> AttachmentReference {
    AttachmentReference(sha256: SHA256.hash(content.rawSpan), length: content.count)
  }
}
