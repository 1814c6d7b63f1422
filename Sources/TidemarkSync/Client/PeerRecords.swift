internal import Tidemark
internal import TidemarkEngine

/// The records of one peer in a store's log.
final class PeerRecords {
  private let engine: Engine
  private let peer: [UInt8]
  private let table: RecordTable

  init(_ engine: Engine, peer: [UInt8]) throws(TidemarkError) {
    self.engine = engine
    self.peer = peer
    table = try RecordTable(engine)
  }
}
