internal import TidemarkEngine

/// Values that travel apart: `WireProtocol.md`, section "Large values".
extension WireReader {
  mutating func downloadRequest() throws(FormatError) -> DownloadRequest {
    DownloadRequest(
      replica: try replica(), position: try position(), offset: try valueLength(),
      limit: try bytes.varint(atMost: DownloadRequest.mostBytes))
  }

  mutating func downloadAnswer() throws(FormatError) -> DownloadAnswer {
    DownloadAnswer(length: try valueLength(), bytes: try part())
  }

  /// The length of a value, or a place in one: it says nothing of what follows.
  private mutating func valueLength() throws(FormatError) -> Int {
    try bytes.varint(atMost: Limits.valueBytes)
  }

  private mutating func part() throws(FormatError) -> [UInt8] {
    try bytes.array(try bytes.varint(atMost: min(Limits.valueBytes, bytes.remaining)))
  }
}

extension WireWriter {
  mutating func write(_ request: DownloadRequest) {
    replica(request.replica)
    position(request.position)
    out.varint(request.offset)
    out.varint(request.limit)
  }

  mutating func write(_ answer: DownloadAnswer) {
    out.varint(answer.length)
    bytes(answer.bytes)
  }
}
