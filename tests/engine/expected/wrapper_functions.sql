-- fn_all_changes_HR_Department
create function [fn_all_changes_HR_Department]
(
    @start_time datetime = null,
    @end_time datetime = null,
    @row_filter_option nvarchar(30) = N'all'
)
returns @resultset table
(
    [__CDC_STARTLSN] binary(10),
    [__CDC_SEQVAL] binary(10),
    [id] integer,
    [a]]b] numeric(12,2),
    [__CDC_OPERATION] nvarchar(2),
    [a]]b_uflag] bit,
    [it's_uflag] bit
)
as
begin
    declare @from_lsn binary(10), @to_lsn binary(10)

    if @start_time is null
        select @from_lsn = sys.fn_cdc_get_min_lsn(N'HR_Department')
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_min_lsn(N'HR_Department')) > @start_time
         or sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @start_time
        select @from_lsn = null
    else
        select @from_lsn = sys.fn_cdc_increment_lsn(
            sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @start_time))

    if @end_time is null
        select @to_lsn = sys.fn_cdc_get_max_lsn()
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @end_time
        select @to_lsn = null
    else
        select @to_lsn = sys.fn_cdc_map_time_to_lsn(N'largest less than', @end_time)

    if @from_lsn is not null and @to_lsn is not null and @from_lsn > @to_lsn
        return

    insert into @resultset
    select
        [__$start_lsn] as [__CDC_STARTLSN],
        [__$seqval] as [__CDC_SEQVAL],
        [id] as [id],
        [a]]b] as [a]]b],
        case [__$operation] when 1 then N'D' when 2 then N'I' when 3 then N'UO' when 4 then N'UN' when 5 then N'M' end as [__CDC_OPERATION],
        case when [__$operation] = 4 and [__$update_mask] is not null then sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal(N'HR_Department', N'a]b'), [__$update_mask]) end as [a]]b_uflag],
        case when [__$operation] = 4 and [__$update_mask] is not null then sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal(N'HR_Department', N'it''s'), [__$update_mask]) end as [it's_uflag]
    from cdc.[fn_cdc_get_all_changes_HR_Department](@from_lsn, @to_lsn, @row_filter_option)

    return
end

-- fn_net_changes_HR_Department
create function [fn_net_changes_HR_Department]
(
    @start_time datetime = null,
    @end_time datetime = null,
    @row_filter_option nvarchar(30) = N'all'
)
returns @resultset table
(
    [id] integer,
    [a]]b] numeric(12,2),
    [__CDC_OPERATION] nvarchar(2),
    [a]]b_uflag] bit,
    [it's_uflag] bit
)
as
begin
    declare @from_lsn binary(10), @to_lsn binary(10)

    if @start_time is null
        select @from_lsn = sys.fn_cdc_get_min_lsn(N'HR_Department')
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_min_lsn(N'HR_Department')) > @start_time
         or sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @start_time
        select @from_lsn = null
    else
        select @from_lsn = sys.fn_cdc_increment_lsn(
            sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @start_time))

    if @end_time is null
        select @to_lsn = sys.fn_cdc_get_max_lsn()
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @end_time
        select @to_lsn = null
    else
        select @to_lsn = sys.fn_cdc_map_time_to_lsn(N'largest less than', @end_time)

    if @from_lsn is not null and @to_lsn is not null and @from_lsn > @to_lsn
        return

    insert into @resultset
    select
        [id] as [id],
        [a]]b] as [a]]b],
        case [__$operation] when 1 then N'D' when 2 then N'I' when 3 then N'UO' when 4 then N'UN' when 5 then N'M' end as [__CDC_OPERATION],
        case when [__$operation] = 4 and [__$update_mask] is not null then sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal(N'HR_Department', N'a]b'), [__$update_mask]) end as [a]]b_uflag],
        case when [__$operation] = 4 and [__$update_mask] is not null then sys.fn_cdc_is_bit_set(sys.fn_cdc_get_column_ordinal(N'HR_Department', N'it''s'), [__$update_mask]) end as [it's_uflag]
    from cdc.[fn_cdc_get_net_changes_HR_Department](@from_lsn, @to_lsn, @row_filter_option)

    return
end

-- fn_all_changes_it's
create function [fn_all_changes_it's]
(
    @start_time datetime = null,
    @end_time datetime = null,
    @row_filter_option nvarchar(30) = N'all'
)
returns @resultset table
(
    [__CDC_STARTLSN] binary(10),
    [__CDC_SEQVAL] binary(10),
    [id] integer,
    [it's] text,
    [a]]b] numeric(12,2),
    [__CDC_OPERATION] nvarchar(2)
)
as
begin
    declare @from_lsn binary(10), @to_lsn binary(10)

    if @start_time is null
        select @from_lsn = sys.fn_cdc_get_min_lsn(N'it''s')
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_min_lsn(N'it''s')) > @start_time
         or sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @start_time
        select @from_lsn = null
    else
        select @from_lsn = sys.fn_cdc_increment_lsn(
            sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @start_time))

    if @end_time is null
        select @to_lsn = sys.fn_cdc_get_max_lsn()
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @end_time
        select @to_lsn = null
    else
        select @to_lsn = sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @end_time)

    if @from_lsn is not null and @to_lsn is not null and @from_lsn > @to_lsn
        return

    insert into @resultset
    select
        [__$start_lsn] as [__CDC_STARTLSN],
        [__$seqval] as [__CDC_SEQVAL],
        [id] as [id],
        [it's] as [it's],
        [a]]b] as [a]]b],
        case [__$operation] when 1 then N'D' when 2 then N'I' when 3 then N'UO' when 4 then N'UN' when 5 then N'M' end as [__CDC_OPERATION]
    from cdc.[fn_cdc_get_all_changes_it's](@from_lsn, @to_lsn, @row_filter_option)

    return
end

-- fn_net_changes_it's
create function [fn_net_changes_it's]
(
    @start_time datetime = null,
    @end_time datetime = null,
    @row_filter_option nvarchar(30) = N'all'
)
returns @resultset table
(
    [id] integer,
    [it's] text,
    [a]]b] numeric(12,2),
    [__CDC_OPERATION] nvarchar(2)
)
as
begin
    declare @from_lsn binary(10), @to_lsn binary(10)

    if @start_time is null
        select @from_lsn = sys.fn_cdc_get_min_lsn(N'it''s')
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_min_lsn(N'it''s')) > @start_time
         or sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @start_time
        select @from_lsn = null
    else
        select @from_lsn = sys.fn_cdc_increment_lsn(
            sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @start_time))

    if @end_time is null
        select @to_lsn = sys.fn_cdc_get_max_lsn()
    else if sys.fn_cdc_map_lsn_to_time(sys.fn_cdc_get_max_lsn()) < @end_time
        select @to_lsn = null
    else
        select @to_lsn = sys.fn_cdc_map_time_to_lsn(N'largest less than or equal', @end_time)

    if @from_lsn is not null and @to_lsn is not null and @from_lsn > @to_lsn
        return

    insert into @resultset
    select
        [id] as [id],
        [it's] as [it's],
        [a]]b] as [a]]b],
        case [__$operation] when 1 then N'D' when 2 then N'I' when 3 then N'UO' when 4 then N'UN' when 5 then N'M' end as [__CDC_OPERATION]
    from cdc.[fn_cdc_get_net_changes_it's](@from_lsn, @to_lsn, @row_filter_option)

    return
end

