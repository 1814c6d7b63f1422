/// The columns that the heads of a frame have. One that is left out has the same answer for all
/// entries: they are puts, they end their batch, and they have none of the rest.
struct HeadColumns: OptionSet, Sendable {
  var rawValue: UInt16

  static let kinds = HeadColumns(rawValue: 1)
  static let ends = HeadColumns(rawValue: 2)
  static let sequences = HeadColumns(rawValue: 4)
  static let labelSets = HeadColumns(rawValue: 8)
  static let valueLengths = HeadColumns(rawValue: 16)
  static let previous = HeadColumns(rawValue: 32)
  static let commitTimes = HeadColumns(rawValue: 64)
  static let valueSequences = HeadColumns(rawValue: 128)
  static let created = HeadColumns(rawValue: 256)
  static let attributeLengths = HeadColumns(rawValue: 512)
  /// In the order in which they are stored.
  static let all = (0..<10).map { HeadColumns(rawValue: 1 << UInt16($0)) }
  /// Those in which every entry has a number, where they are there at all.
  static let ofAll: HeadColumns = [.kinds, .ends, .sequences, .commitTimes]
  static let known: UInt16 = 1 << 10 - 1
}
