/// Of the engine's own records only the newest of every type and key says anything: which of
/// those in a window of a compaction are older than another one there.
///
/// The newest in the whole log is the newest of its window, so it always stays.
struct NewestRecords {
  private struct Name: Hashable {
    var type: UInt32
    var key: [UInt8]
  }

  private var newest: [Name: (sequence: UInt64, place: Int)] = [:]
  /// Places of those that may go.
  private(set) var superseded: Set<Int> = []

  /// Takes one into account.
  /// - Parameter place: how the caller finds it again.
  mutating func note(
    _ head: EntryHead, of front: DecodedFront, at place: Int
  ) throws(TidemarkError) {
    let type: UInt32
    do { type = try front.attributes(of: head).recordType } catch {
      throw TidemarkError(.damaged, "a record of the engine cannot be read", cause: error)
    }
    // Of others there may be many with the same name.
    let known = RecordType(rawValue: type)
    guard known.isListed || known == .checkpoint else { return }
    let name = Name(type: type, key: [UInt8](copying: front.key(of: head)))
    guard let other = newest[name] else {
      newest[name] = (head.sequence, place)
      return
    }
    if other.sequence < head.sequence {
      superseded.insert(other.place)
      newest[name] = (head.sequence, place)
    } else {
      superseded.insert(place)
    }
  }
}
