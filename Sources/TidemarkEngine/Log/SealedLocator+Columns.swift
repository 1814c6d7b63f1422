/// Look-ups in packed columns, the format of a locator's tables: rows in groups of 128, and for
/// each group and column a record with a line that tells about what the numbers are. A damaged
/// locator may give any number, and never a read out of bounds or an endless search.
extension SealedLocator {
  /// The number of a row in a column.
  @inline(__always)
  func number(_ table: Packed, _ row: Int, column: Int) throws(LogReadError) -> UInt64 {
    guard row >= 0, row < table.rows else { throw Self.outOfBounds }
    let group = try group(table, row &>> PackedColumns.groupShift, column: column)
    return try number(table, group, row & (PackedColumns.groupRows &- 1))
  }

  /// The numbers of a row and of the next row.
  @inline(__always)
  func numbers(
    _ table: Packed, from row: Int, column: Int
  ) throws(LogReadError) -> (UInt64, UInt64) {
    let index = row & (PackedColumns.groupRows &- 1)
    guard row >= 0, row &+ 1 < table.rows, index < PackedColumns.groupRows &- 1 else {
      return (try number(table, row, column: column), try number(table, row + 1, column: column))
    }
    let group = try group(table, row &>> PackedColumns.groupShift, column: column)
    return (try number(table, group, index), try number(table, group, index &+ 1))
  }

  /// The record of a group for a column.
  @inline(__always)
  func group(_ table: Packed, _ group: Int, column: Int) throws(LogReadError) -> PackedGroup {
    let place = group &* table.recordBytes &+ column &* PackedColumns.recordBytes
    let offset = try load(table.records, place)
    let memory = self.memory
    do { return try PackedGroup(memory.bytes(offset, PackedColumns.recordBytes), at: 0) } catch {
      throw .format(error)
    }
  }

  /// The number at an index of a group.
  @inline(__always)
  func number(_ table: Packed, _ group: PackedGroup, _ index: Int) throws(LogReadError) -> UInt64 {
    guard group.bits > 0 else { return group.number(index) & Self.mask }
    // Eight bytes may reach beyond a chunk: in memory there is a gap behind each.
    let offset = try load(table.remainders, group.byte(of: index))
    let memory = self.memory
    do {
      return group.number(index, try memory.bytes(offset, 8).u64(at: 0)) & Self.mask
    } catch { throw .format(error) }
  }

  /// Numbers are below this, whatever a damaged group says.
  private static let mask: UInt64 = 1 << 48 - 1

  /// Most guesses before a search only halves.
  private static let guesses = 8

  /// How many rows have less than `number` in the first column, which ascends. Numbers lie about
  /// evenly, so that guesses from the bounds find most groups with few looks: W. W. Peterson,
  /// "Addressing for random-access storage", 1957.
  /// - Parameter directory: the table's, where there is one; takes the place of guesses.
  func rows(
    _ table: Packed, below number: UInt64, _ directory: GroupDirectory? = nil
  ) throws(LogReadError) -> Int {
    guard table.rows > 0 else { return 0 }
    var (low, high) = (0, PackedColumns.groups(rows: table.rows) - 1)
    // The first numbers of groups `low` and `high`, for guesses.
    var (least, most, guesses): (UInt64, UInt64, Int) = (0, 0, Self.guesses)
    if let directory {
      guard let bounds = directory.bounds(below: number) else { return 0 }
      (low, high) = bounds
    } else {
      least = try group(table, low, column: 0).first
      guard least < number else { return 0 }
      most = try group(table, high, column: 0).first
      if most < number { low = high }
      guesses = 0
    }
    while high - low > 1 {
      var middle = (low + high) / 2
      if guesses < Self.guesses, number > least, most >= number {
        let share = Double(number - least) / Double(most - least) * Double(high - low)
        middle = min(max(low + Int(share), low + 1), high - 1)
        guesses += 1
      }
      let first = try group(table, middle, column: 0).first
      if first < number {
        low = middle
        least = first
      } else {
        high = middle
        most = first
      }
    }
    return try rows(table, inGroup: low, below: number)
  }

  /// How many rows have less than `limit`, where group `number` is the last that begins below it.
  func rows(_ table: Packed, inGroup number: Int, below limit: UInt64) throws(LogReadError) -> Int {
    let start = number << PackedColumns.groupShift
    let group = try group(table, number, column: 0)
    // Number `low - 1` is below the limit, and number `high` is not.
    var low = 1
    var high = min(PackedColumns.groupRows, table.rows - start)
    var middle = group.index(of: limit, from: 0, group.first)
    var guesses = 0
    while low < high {
      middle = guesses < Self.guesses ? min(max(middle, low), high - 1) : (low + high) / 2
      let found = try self.number(table, group, middle)
      if found < limit { low = middle + 1 } else { high = middle }
      middle = group.index(of: limit, from: middle, found)
      guesses += 1
    }
    return start + low
  }
}
