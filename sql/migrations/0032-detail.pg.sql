-- What a worker says of a failure besides its class and message: any JSON, as its text. A row for each lease whose
-- failure has one, beside its outcome or attempt; failures without one write nothing here. The text comes back as
-- it came, byte for byte. An older binary neither writes nor shows it; a row that it leaves behind when it removes
-- an execution is found by the scanner invariant_check.
CREATE TABLE weft.detail (
    id     uuid NOT NULL,
    epoch  int  NOT NULL,
    detail text NOT NULL,
    PRIMARY KEY (id, epoch)
);
